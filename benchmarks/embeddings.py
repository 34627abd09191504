"""Embedders of several languages: retrieval of translations, mining, and bad pairs they find.

    python -m benchmarks.embeddings MODEL... --data DATA [--pairs 500] [--others 1500]
        [--planted 500] [--more 0] [--speed 30000] [--save]

MODEL is a saved or imported text embedder; DATA is a folder with `tatoeba-en-de` and others.

- Retrieval: the share of sentences whose most similar translation is not their own, among `--pairs`
  pairs of the validation set of each language.
- Mining: so many pairs are hidden among `--others` other sentences on each side (English-German).
  Precision and recall are those of the pairs with the best F1, by margin and by cosine.
- Cleaning: of `--planted` pairs with the translation of another sentence, and as many whose second
  half is of another one, how many the other filters of `clean` find; and how many of the rest are
  below the similarity, or the margin among all these pairs and `--more` pairs of the training
  text, under which 1 or 5 % of the good pairs are (English-German).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks import contest
from benchmarks.cleaning import Pair, shuffled, together
from keras_transformer import TextEmbedder
from keras_transformer.data.text_files import read_pairs
from keras_transformer.tasks.mining import margins, mined
from keras_transformer.tasks.similarity import cosines, nearest
from keras_transformer.training.text_embedding import distinct, measured

LANGUAGES = ("de", "fr", "es")
SHARES = (1, 5)  # percentage of good pairs that are dropped


def held_out(data: Path, language: str, count: int) -> list[Pair]:
    """Return pairs of Tatoeba's validation set, English first, drawn at random."""
    folder = data / f"tatoeba-en-{language}"
    pairs = distinct(read_pairs(*(folder / f"dev.{x}.gz" for x in ("en", language))))
    chosen = np.random.default_rng(0).permutation(len(pairs))[:count]
    if len(chosen) < count:
        raise ValueError(f"{folder} must have {count} pairs for these options, got {len(pairs)}")
    return [pairs[i] for i in chosen]


def half_wrong(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with the second half of each target taken from the next pair's target."""

    def joined(text, following):
        words, others = text.split(), following.split()
        return " ".join([*words[: len(words) // 2], *others[len(others) // 2 :]])

    following = [*pairs[1:], *pairs[:1]]
    return [(x, joined(y, other)) for (x, y), (_, other) in zip(pairs, following, strict=True)]


def best_f1(is_right: np.ndarray, total: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the first n pairs, with the n of the best F1.

    Args:
        is_right: Whether each pair that was found is right, best pair first.
        total: Number of right pairs that there are.
    """
    right, number = np.cumsum(is_right), np.arange(1, len(is_right) + 1)
    f1 = 2 * right / (number + total)
    best = int(np.argmax(f1))
    return float(right[best] / number[best]), float(right[best] / total), float(f1[best])


def by_cosine(sources: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest target of each source, the pairs of the highest cosine first."""
    found, scores = (x[:, 0] for x in nearest(sources, targets, 1))
    order = np.argsort(-scores, kind="stable")
    return order, found[order]


def retrieval(embedder: TextEmbedder, data: Path, count: int) -> list[str]:
    """Return the errors of retrieval in percent: into English and out of it, by language."""
    cells = []
    for language in LANGUAGES:
        errors = measured(embedder, held_out(data, language, count))
        cells += [f"{100 * errors[x]:.1f}" for x in ("source_error", "target_error")]
    return cells


def mining(embedder: TextEmbedder, data: Path, count: int, others: int) -> list[list[str]]:
    """Return precision, recall and F1 of the hidden pairs, by margin and by cosine."""
    pairs = held_out(data, "de", count + 2 * others)
    hidden, rest = pairs[:count], pairs[count:]
    sources = [x for x, _ in hidden] + [x for x, _ in rest[:others]]
    targets = [y for _, y in hidden] + [y for _, y in rest[others:]]
    one, other = embedder.embed(sources), embedder.embed(targets)
    rows = []
    for name, (x, y) in {"margin": mined(one, other)[1:], "cosine": by_cosine(one, other)}.items():
        scores = best_f1((x == y) & (x < count), count)
        rows.append([name, *(f"{100 * score:.1f}" for score in scores)])
    return rows


def speed(count: int, width: int = 128) -> str:
    """Return how long mining takes with as many random vectors on each side."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((2, count, width)).astype("float32")
    start = time.process_time()
    mined(vectors[0], vectors[1])
    seconds = time.process_time() - start
    return f"Mining {count:,} with {count:,} vectors of {width} elements: {seconds:.1f} s of CPU."


def cleaning(
    embedder: TextEmbedder,
    good: Sequence[Pair],
    planted: Sequence[Sequence[Pair]],
    more: Sequence[Pair] = (),
) -> list[list[str]]:
    """Return, for each share of good pairs that is dropped, how many of each kind are found.

    Margins also have their neighbours among `more` pairs.
    """
    parts = [good, *planted, more]
    ends = np.cumsum([len(part) for part in parts])
    pairs = [pair for part in parts for pair in part]
    sources, targets = (embedder.embed(side) for side in zip(*pairs, strict=True))
    places = np.arange(len(pairs))
    measures = dict(
        similarity=cosines(sources, targets), margin=margins(sources, targets, places, places)
    )
    rows = []
    for share in SHARES:
        for name, scores in measures.items():
            of_good, *of_planted, _, _ = np.split(scores, ends)
            least = np.percentile(of_good, share)
            numbers = [f"{np.sum(part < least)} of {len(part)}" for part in of_planted]
            rows.append([f"{name} below {least:.2f}", *numbers, f"{share}"])
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--others", type=int, default=1500)
    parser.add_argument("--planted", type=int, default=500)
    parser.add_argument("--more", type=int, default=0)
    parser.add_argument("--speed", type=int, help="vectors on each side of a timed mining")
    parser.add_argument("--save", action="store_true", help="write the tables to results/")
    options = parser.parse_args()
    pairs = held_out(options.data, "de", 4 * options.planted)
    number = options.planted
    good = pairs[: 2 * number]
    planted = shuffled(pairs[2 * number : 3 * number]), half_wrong(pairs[3 * number :])
    text = (options.data / "tatoeba-en-de" / f"train.{x}.gz" for x in ("en", "de"))
    more = distinct(read_pairs(*text))[: options.more] if options.more else []
    check = together(0.8)
    *missed, kept = ([x for x in part if check(*x) is None] for part in (*planted, good))
    numbers = [f"{number - len(part)} of {number}" for part in missed]
    first = ["the other filters", *numbers, f"{100 - 100 * len(kept) / len(good):.1f}"]
    tables: dict[str, list[list[str]]] = dict(retrieval=[], mining=[], cleaning=[first])
    for path in options.models:
        embedder, name = TextEmbedder.load(path), f"`{path.name}`"
        tables["retrieval"].append([name, *retrieval(embedder, options.data, options.pairs)])
        rows = mining(embedder, options.data, options.pairs, options.others)
        tables["mining"] += [[f"{name}, {row[0]}", *row[1:]] for row in rows]
        dropped = cleaning(embedder, good, missed, more)
        tables["cleaning"] += [[f"{name}, {row[0]}", *row[1:]] for row in dropped]
    directions = [f"{x} {y}" for x in LANGUAGES for y in ("from English", "to English")]
    headers = dict(
        retrieval=["errors, percent", *directions],
        mining=["mined by", "precision", "recall", "F1"],
        cleaning=["dropped by", "shuffled", "half wrong", "good, percent"],
    )
    parts = [contest.table(headers[name], rows) for name, rows in tables.items()]
    parts += [speed(options.speed)] if options.speed else []
    contest.report("embeddings", "Embedders of several languages", parts, options.save)


if __name__ == "__main__":
    main()
