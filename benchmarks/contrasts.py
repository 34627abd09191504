"""Accuracy of translators of the built-in grammar on contrastive pairs, by phenomenon.

    python -m benchmarks.contrasts FOLDER [FOLDER ...] [--pairs 200] [--seed 0] [--save]

Each FOLDER is a translator from English to German. A pair is an English sentence with a right and a
wrong German translation, which differ in one point; the table has the share of the pairs in which
the right one is more probable. A guess gives 50 %.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import contest


def main() -> None:
    """Score and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--pairs", type=int, default=200, help="of each phenomenon")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()

    from benchmarks.measures.contrastive import contrastive_accuracy
    from benchmarks.measures.contrastive_pairs import PHENOMENA, contrasts
    from keras_transformer import Translator

    suite = {name: contrasts(name, options.pairs, options.seed) for name in PHENOMENA}
    accuracies, columns = [], ["phenomenon"]
    for folder in options.folders:
        translator = Translator.load(folder)
        columns.append(f"{folder.name}: {translator.model.count_params():,} weights")
        accuracies.append(contrastive_accuracy(translator, suite))
    rows = [(name, *(f"{x[name]:.1f}" for x in accuracies)) for name in suite]
    rows.append(("mean", *(f"{sum(x.values()) / len(x):.1f}" for x in accuracies)))
    example = [(name, pairs[0].right, pairs[0].wrong) for name, pairs in suite.items()]
    parts = [
        contest.table(columns, rows),
        f"Accuracy in percent, of {options.pairs} pairs each (seed {options.seed}). "
        "The first pairs:",
        contest.table(("phenomenon", "right", "wrong"), example),
    ]
    contest.report("contrasts", "Contrastive pairs of the grammar", parts, options.save)


if __name__ == "__main__":
    main()
