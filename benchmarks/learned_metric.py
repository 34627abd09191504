"""A small learned metric, trained from scratch: does it order systems as people would?

    python -m benchmarks.learned_metric ROOM --data DATA [--sources 8000] [--epochs 3]

Tatoeba has several German translations of many English sentences. One is the reference; another, a
paraphrase, scores 1. Damaged references score less: with a share d of words replaced by words of
other sentences 1 - d, with a reversed negation or another number 0.25, and the translation of
another sentence 0. The metric (`keras-transformer train --task metric`) learns these scores. The
systems of the test translate other sentences, each with one kind of change; the table has their
mean scores by chrF and by the metric. ROOM keeps the files and the trained metric.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
from collections.abc import Callable
from pathlib import Path

NUMBERS = ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "hundert"]
NEGATED = {"kein": "ein", "keine": "eine", "keinen": "einen", "keinem": "einem", "keiner": "einer"}
NEGATED |= {positive: negative for negative, positive in NEGATED.items()}
REVERSED = 0.25
TEST = 500  # sentences of the test


def pairs(folder: Path) -> dict[str, list[str]]:
    """Return the German translations of each English sentence that has two or more."""
    sides = [
        gzip.decompress((folder / f"train.{x}.gz").read_bytes()).decode() for x in ("en", "de")
    ]
    by_source: dict[str, list[str]] = {}
    for source, target in zip(*(side.split("\n") for side in sides), strict=True):
        targets = by_source.setdefault(source, [])
        if target not in targets and 3 <= len(target.split()) <= 10:
            targets.append(target)
    return {source: targets for source, targets in by_source.items() if len(targets) > 1}


def reversed_meaning(text: str, draw: random.Random) -> str | None:
    """Return a text with one negation or number changed; None if there is none to change."""
    words = re.findall(r"\w+|\W+", text)
    places = [i for i, x in enumerate(words) if x in (*NUMBERS, *NEGATED, "nicht")]
    if not places:
        return None
    i = draw.choice(places)
    if words[i] == "nicht":
        return "".join(words[:i] + words[i + 1 :]).replace("  ", " ").replace(" .", ".")
    others = [x for x in NUMBERS if x != words[i]]
    words[i] = NEGATED.get(words[i]) or draw.choice(others)
    return "".join(words)


def replaced(text: str, share: float, vocabulary: list[str], draw: random.Random) -> str:
    """Return a text with a share of its words, at least one, replaced."""
    words = text.split()
    for i in draw.sample(range(len(words)), max(1, round(share * len(words)))):
        words[i] = draw.choice(vocabulary)
    return " ".join(words)


def changed(kind: str, row: list[str], vocabulary: list[str], draw: random.Random) -> str | None:
    """Return a translation by a system of the test; None if the kind cannot change this one."""
    reference, other = row
    if kind == "paraphrase":
        return other
    if kind == "negation or number":
        return reversed_meaning(reference, draw)
    return replaced(reference, int(kind.split()[0]) / 100, vocabulary, draw)


SYSTEMS = ("paraphrase", "10 % replaced", "20 % replaced", "40 % replaced", "negation or number")


def write_training(path: Path, rows: list[tuple[str, str, str]], draw: random.Random) -> None:
    """Write scored translations of (source, reference, paraphrase) as the docstring says."""
    vocabulary = sorted({word for _, reference, _ in rows for word in reference.split()})
    lines = []

    def add(source, text, reference, score):
        lines.append(f"{source}\t{text}\t{reference}\t{score}\n")

    for source, reference, other in rows:
        add(source, other, reference, 1)
        add(source, reference, other, 1)
        share = draw.random()
        damaged = replaced(reference, share, vocabulary, draw)
        count = len(reference.split())
        add(source, damaged, other if draw.random() < 0.5 else reference,
            round(1 - max(1, round(share * count)) / count, 3))  # fmt: skip
        for text, compared in ((reference, other), (other, reference), (reference, reference)):
            if wrong := reversed_meaning(text, draw):
                add(source, wrong, compared, REVERSED)
        add(source, draw.choice(rows)[1], reference, 0)
    draw.shuffle(lines)
    path.write_text("".join(lines), "utf-8")


def main() -> None:
    """Make the files, train the metric, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("room", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--sources", type=int, default=8000)
    options = parser.parse_args()
    draw, room = random.Random(0), options.room
    rows = [
        (x, *draw.sample(y, 2)) for x, y in sorted(pairs(options.data / "tatoeba-en-de").items())
    ]
    draw.shuffle(rows)
    can_reverse: Callable = lambda row: reversed_meaning(row[1], random.Random(0))  # noqa: E731
    test = [row for row in rows if can_reverse(row)][:TEST]
    held_out = {row[0] for row in test}
    rest = [row for row in rows if row[0] not in held_out]
    room.mkdir(parents=True, exist_ok=True)
    write_training(room / "train.tsv", rest[TEST:][: options.sources], draw)
    write_training(room / "test.tsv", rest[:TEST], draw)
    if not (room / "metric" / "model.keras").exists():
        from keras_transformer.training.metric_training import train

        sizes = dict(d_model=64, epochs=options.epochs)
        train(room / "train.tsv", room / "test.tsv", room / "metric", **sizes)
    print(table(room / "metric", test, draw))


def table(folder: Path, test: list[tuple[str, str, str]], draw: random.Random) -> str:
    """Return the mean scores of the systems as a table in Markdown."""
    from sacrebleu.metrics import CHRF

    from keras_transformer import LearnedMetric

    metric, chrf = LearnedMetric.load(folder), CHRF()
    sources, references = [row[0] for row in test], [row[1] for row in test]
    vocabulary = sorted({word for _, text, _ in test for word in text.split()})
    lines = ["| system | chrF | learned metric |", "| --- | --- | --- |"]
    for kind in SYSTEMS:
        texts = [str(changed(kind, list(row[1:]), vocabulary, draw)) for row in test]
        score = metric.score(sources, texts, references).mean()
        lines.append(
            f"| {kind} | {chrf.corpus_score(texts, [references]).score:.1f} | {score:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
