"""Texts labelled for toxicity by a word list, to train a classifier that sees more than the list.

    python -m benchmarks.labelled_insults --text FILE --output FOLDER [--words FILE]

The text is cut into pieces of a few words. A piece that has a listed word is labelled 1, and the
word is taken out, so that a classifier must learn from its context. As many other pieces are
labelled 0; they lose a random word. This is distant supervision (Mintz et al. 2009), by which a
classifier may find insults that are not on the list. The last tenth of the text gives the test set,
the tenth before it the validation set. `training.text_classification` reads the three files.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from benchmarks.toxicity import WORDS, pieces_of

LENGTH = 13  # words of a piece


def labelled(pieces: list[str], words: set[str], generator: random.Random) -> list[str]:
    """Return lines "piece, tab, label", equally many of both labels, in random order."""
    sides: dict[int, list[str]] = {0: [], 1: []}
    for piece in pieces:
        tokens = piece.split()
        kept = [x for x in tokens if x.casefold().strip(".,;:!?'-") not in words]
        label = int(len(kept) < len(tokens))
        if not label:
            del kept[generator.randrange(len(kept))]
        sides[label].append(" ".join(kept))
    count = min(map(len, sides.values()))
    lines = [
        f"{x}\t{label}" for label, rows in sides.items() for x in generator.sample(rows, count)
    ]
    return generator.sample(lines, len(lines))


def main() -> None:
    """Write train.tsv, validation.tsv and test.tsv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--words", type=Path, default=WORDS, help="word list, a word per line")
    options = parser.parse_args()
    from benchmarks.measures.toxicity import WordList
    from keras_transformer.data.text_files import read_lines

    words, generator = set(WordList.read(options.words).words), random.Random(0)
    pieces = pieces_of(read_lines(options.text), LENGTH)
    tenth = len(pieces) // 10
    parts = {
        "train": pieces[: -2 * tenth],
        "validation": pieces[-2 * tenth : -tenth],
        "test": pieces[-tenth:],
    }
    options.output.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        lines = labelled(part, words, generator)
        (options.output / f"{name}.tsv").write_text("\n".join(["text\tlabel", *lines, ""]), "utf-8")
        print(f"{name}: {len(lines)} pieces, half of them with a listed word")


if __name__ == "__main__":
    main()
