"""Variants of the sentences of the embedded corpus, as people type them (`varied`).

Lower-cased, with spaces around punctuation, without the final mark, several per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from random import Random

from keras_transformer.demo.phrases import pick
from keras_transformer.demo.syntax import Pair, join


def as_it_is(text: str) -> str:
    """Return the text unchanged."""
    return text


def uncapitalized(text: str) -> str:
    """Lower-case the first letter: the old man loves Anna."""
    return text[0].lower() + text[1:]


def spaced(text: str) -> str:
    """Put a space before each mark: The lamp is old , but it still works ."""
    return re.sub("([,.?])", r" \1", text)


def unended(text: str) -> str:
    """Remove the final mark: The old man loves the dog"""
    return text.rstrip(".?")


WAYS = [
    (case, marks)
    for case in (as_it_is, uncapitalized, str.lower)
    for marks in (as_it_is, spaced, unended)
][1:]  # the first one changes nothing


def varied(
    pairs: Iterable[Pair], seed: int = 0, *, share: float = 0.25, joined: float = 0.15
) -> Iterator[Pair]:
    """Join some sentences into lines, and write the source of some lines carelessly.

    The target stays unchanged: a lower-cased sentence without full stop has the same translation
    as the well-written one.

    Args:
        pairs: (source, target) sentences. Each occurs in one line, and their order is kept.
        seed: Seed of the random choices.
        share: Probability that the source of a line varies in case, punctuation or both; all
            combinations are equally likely.
        joined: Probability that a line continues with the next sentence, in [0, 1).

    Yields:
        (source, target) lines; fewer than `pairs` if some are joined.

    Raises:
        ValueError: If `joined` is out of range.
    """
    if not 0 <= joined < 1:
        raise ValueError(f"joined must be in [0, 1), got {joined}")
    rng, remaining = Random(seed), iter(pairs)
    for source, target in remaining:
        while rng.random() < joined:
            following = next(remaining, ("", ""))
            source, target = join(source, following[0]), join(target, following[1])
        if rng.random() < share:
            case, marks = pick(rng, WAYS)
            source = marks(case(source))
        yield source, target
