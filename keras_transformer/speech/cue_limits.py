"""Limits of subtitles: characters per line, lines, characters per second."""

from __future__ import annotations

from dataclasses import dataclass

from keras_transformer.signatures import check_options, number, option, whole

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

    def is_met_by(self, cue: Cue) -> bool:
        """Return whether a cue stays long enough to be read at `rate`."""
        return sum(map(len, cue.lines)) <= self.rate * (cue.end - cue.start) + 1e-6
