"""Cleaning: how much of each kind of noise the filters find, and how much good text they drop.

    python -m benchmarks.cleaning --data-folder multi30k [--clean 3000] [--noisy 300]
        [--near-duplicates 0.8] [--models FORWARD REVERSE] [--save]

Clean pairs of Multi30k's training text (English-German, with French for lines in another language)
are mixed with as many of each kind of noise, made of other pairs. Each filter is asked alone about
all pairs. Recall is the share of the noise of its kind that it drops, precision the share of what
it drops that is noise of any kind. With two translators of the built-in grammar, their dual
conditional cross-entropy is measured on sentences of the grammar that they have not seen: the pairs
of lowest score are dropped, as many as there are noisy ones.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import contest

Pair = tuple[str, str]


def broken(text: str) -> str:
    """Return the UTF-8 text as Windows-1252 reads it."""
    return text.encode().decode("cp1252", "replace")


def varied(pair: Pair) -> Pair:
    """Return a near duplicate: with other case and punctuation, and one more word."""
    source, target = pair
    return source.rstrip(".").lower() + " !", target.rstrip(".") + " da."


KINDS = 11


def kinds(pairs: list[Pair], french: list[str], clean: list[Pair], rng: random.Random) -> dict:
    """Return noisy pairs of each kind, by its name.

    Args:
        pairs: Good pairs that are not among the clean ones; each kind spoils a share of them.
        french: The French translations of their sources.
        clean: The clean pairs, to repeat some of.
        rng: Random number generator.
    """
    parts = [pairs[i::KINDS] for i in range(KINDS)]
    broken_ones = [(x, broken(y)) for x, y in parts[6]]
    return {
        "shuffled": shuffled(parts[0]),
        "untranslated": [(x, x) for x, _ in parts[1]],
        "nearly untranslated": [(x, x.rstrip(".") + " !") for x, _ in parts[2]],
        "French": [(x, y) for (x, _), y in zip(parts[3], french[3::KINDS], strict=True)],
        "swapped sides": [(y, x) for x, y in parts[4]],
        "near duplicate": [varied(pair) for pair in rng.sample(clean, len(parts[5]))],
        "one word replaced": replaced(rng.sample(clean, len(parts[10]))),
        "broken encoding": [(x, y) for x, y in broken_ones if not y.isascii()],
        "numbers and symbols": [
            (
                f"{rng.random():.4f} | {rng.randrange(10**6)} ...",
                f"{rng.randrange(10**6)} - *** EUR",
            )
            for _ in parts[7]
        ],
        "other years": [
            (f"{x.rstrip('.')} in {1900 + i % 50}.", f"{y.rstrip('.')} im Jahr {1950 + i % 60}.")
            for i, (x, y) in enumerate(parts[8])
        ],
        "half a translation": halved(parts[9]),
    }


def shuffled(pairs: list[Pair]) -> list[Pair]:
    """Return each source with the target of the next pair."""
    return [(x, y) for (x, _), (_, y) in zip(pairs, pairs[1:] + pairs[:1], strict=True)]


def replaced(pairs: list[Pair]) -> list[Pair]:
    """Return the pairs with their last words replaced by those of the next pair."""

    def words(text, next_text):
        return " ".join([*text.split()[:-1], next_text.split()[-1]])

    following = pairs[1:] + pairs[:1]
    return [(words(x, a), words(y, b)) for (x, y), (a, b) in zip(pairs, following, strict=True)]


def halved(pairs: list[Pair]) -> list[Pair]:
    """Return each source with the first half of the words of its target."""
    return [(x, " ".join(y.split()[: len(y.split()) // 2])) for x, y in pairs]


def filters(threshold: float) -> dict[str, Callable]:
    """Return the filters by their names in the table."""
    from keras_transformer.data.character_filters import CHARACTER_FILTERS
    from keras_transformer.data.cleaning import DuplicateFilter, LengthFilter
    from keras_transformer.data.near_duplicates import NearDuplicateFilter
    from keras_transformer.text.identification import LanguageFilter
    from keras_transformer.text.scripts import ScriptFilter

    return {
        "length, identical": LengthFilter(),
        "duplicate": DuplicateFilter(),
        **CHARACTER_FILTERS,
        "script": ScriptFilter("en", "de"),
        "language": LanguageFilter("en", "de"),
        "near_duplicate": NearDuplicateFilter(threshold),
    }


def measured(clean: list[Pair], noise: dict[str, list[Pair]], drops: Callable) -> dict[str, float]:
    """Return the shares that a filter drops: of clean pairs (key ""), and of each kind of noise."""
    return {
        name: sum(drops(*pair) is not None for pair in pairs) / max(1, len(pairs))
        for name, pairs in {"": clean, **noise}.items()
    }


def by_filters(given: Any) -> str:
    """Return the table of the filters on Multi30k."""
    from keras_transformer.data.built_in_corpora import load_corpus

    pairs, french = (
        load_corpus("multi30k", given.data_folder, target_language=code).train
        for code in ("de", "fr")
    )
    rng = random.Random(0)
    chosen = rng.sample(range(len(pairs)), given.clean + KINDS * given.noisy)
    good, rest = chosen[: given.clean], chosen[given.clean :]
    clean = [pairs[i] for i in good]
    noise = kinds([pairs[i] for i in rest], [french[i][1] for i in rest], clean, rng)
    columns = filters(given.near_duplicates)
    columns["all, in order"] = together(given.near_duplicates)
    rows = []
    for name, check in columns.items():
        rates = measured(clean, noise, check)
        of_clean = rates.pop("")
        shares = (f"{kind} {100 * share:.1f}" for kind, share in rates.items() if share)
        bad = sum(share * len(noise[kind]) for kind, share in rates.items())
        precision = f"{100 * bad / dropped:.1f}" if (dropped := bad + of_clean * len(clean)) else ""
        rows.append([name, ", ".join(shares), precision, f"{100 * of_clean:.2f}"])
    sizes = ", ".join(f"{len(part)} {kind}" for kind, part in noise.items())
    header = ("filter", "noise that it drops, percent", "precision", "clean pairs, percent")
    return f"{contest.table(header, rows)}\n\n{len(clean)} clean pairs; {sizes}."


def together(threshold: float) -> Callable:
    """Return the filter that asks all filters in order, as the command does."""
    order = list(filters(threshold).values())
    return lambda *pair: next(filter(None, (check(*pair) for check in order)), None)


def by_models(given: Any) -> str:
    """Return the table of the scores of two translators of the grammar."""
    import numpy as np

    from keras_transformer import Translator
    from keras_transformer.data.built_in_corpora import load_corpus
    from keras_transformer.translate.dual_cross_entropy import dual_scores

    forward, reverse = map(Translator.load, given.models)
    corpus = load_corpus("grammar")
    clean, rest = corpus.validation, corpus.tests["test"]
    noise = {
        "shuffled": shuffled(rest[0::4]),
        "untranslated": [(x, x) for x, _ in rest[1::4]],
        "swapped sides": [(y, x) for x, y in rest[2::4]],
        "half a translation": halved(rest[3::4]),
    }
    pairs = [*clean, *(pair for part in noise.values() for pair in part)]
    scores = dual_scores(forward, reverse, *zip(*pairs, strict=True))
    worst = np.argsort(scores, kind="stable")[: len(pairs) - len(clean)]
    dropped, start = np.isin(np.arange(len(pairs)), worst), 0
    rows = []
    for name, part in {"clean": clean, **noise}.items():
        mine = slice(start, start := start + len(part))
        numbers = f"{100 * dropped[mine].mean():.1f}", f"{np.median(scores[mine]):.2g}"
        rows.append([name, len(part), *numbers])
    return contest.table(["grammar", "pairs", "percent dropped", "median score"], rows)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-folder", type=Path)
    parser.add_argument("--clean", type=int, default=3000)
    parser.add_argument("--noisy", type=int, default=300)
    parser.add_argument("--near-duplicates", type=float, default=0.8)
    parser.add_argument("--models", type=Path, nargs=2)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    parts = [by_filters(options)]
    if options.models:
        parts.append(by_models(options))
    contest.report("cleaning", "Cleaning of parallel text", parts, options.save)


if __name__ == "__main__":
    main()
