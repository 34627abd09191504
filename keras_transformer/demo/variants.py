"""Variants of the sentences of the embedded grammar, as people type them (`varied`).

Lower-cased, with spaces around punctuation, without the final mark, several per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.phrases import Draw
from keras_transformer.demo.syntax import join


def uncapitalized(text: str) -> str:
    """Lower-case the first letter: the old man loves Anna."""
    return text[0].lower() + text[1:]


def spaced(text: str) -> str:
    """Put a space before each mark: The lamp is old , but it still works ."""
    return re.sub("([,.?])", r" \1", text)


def unended(text: str) -> str:
    """Remove the final mark: The old man loves the dog"""
    return text.rstrip(".?")


# Changes of case, each with changes of marks; the first one changes nothing.
WAYS = [*product((str, uncapitalized, str.lower), (str, spaced, unended))][1:]


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
    draw, remaining = Draw(seed), iter(pairs)
    for source, target in remaining:
        while draw.random() < joined:
            following = next(remaining, ("", ""))
            source, target = join(source, following[0]), join(target, following[1])
        if draw.random() < share:
            case, marks = draw.pick(WAYS)
            source = marks(case(source))
        yield source, target
