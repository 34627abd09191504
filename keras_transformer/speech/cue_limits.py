"""Limits of subtitles: characters per line, lines, characters per second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keras_transformer.signatures import check_options, number, option, whole
from keras_transformer.text.word_spans import join_words

_above_0 = number(lambda x: x > 0, "above 0")


@dataclass(frozen=True)
class Cue:
    """A subtitle: its lines, and its start and end in seconds."""

    start: float
    end: float
    lines: list[str]


@dataclass(frozen=True)
class CueLimits:
    """Limits of a cue.

    Raises:
        ValueError: If a value is out of its range; names the option.
    """

    characters: int = option(42, whole(1), "Maximum characters per line.")
    lines: int = option(2, whole(1), "Maximum lines per cue.")
    rate: float = option(
        21.0,
        _above_0,
        "Maximum characters per second: a cue stays longer if the next one leaves room.",
    )

    def __post_init__(self) -> None:
        check_options(self)

    def wrapped(self, words: Sequence[str]) -> list[str]:
        """Return the words in the fewest lines, with the longest line as short as possible."""
        lines = lines_of(words, self.characters)
        for width in range(max(map(len, words)), self.characters):
            if len(shorter := lines_of(words, width)) == len(lines):
                return shorter
        return lines

    def is_met_by(self, cue: Cue) -> bool:
        """Return whether a cue stays long enough to be read at `rate`."""
        return sum(map(len, cue.lines)) <= self.rate * (cue.end - cue.start) + 1e-6


def lines_of(words: Sequence[str], width: int) -> list[str]:
    """Return the words in lines of at most `width` characters, if no word is longer."""
    lines: list[str] = []
    row: list[str] = []
    for word in words:
        if row and len(join_words([*row, word])) > width:
            lines.append(join_words(row))
            row = []
        row.append(word)
    return [*lines, join_words(row)]
