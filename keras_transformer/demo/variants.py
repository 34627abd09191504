"""`varied`: variants of the sentences of the built-in grammar, as people type them.

Some sources are in lower case, have a space before punctuation or lack the final mark. Some lines
hold several sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.phrases import Draw
from keras_transformer.demo.syntax import join


def uncapitalized(text: str) -> str:
    """Return a text with its first letter in lower case: the old man loves Anna."""
    return text[0].lower() + text[1:]


def spaced(text: str) -> str:
    """Return a text with a space before each punctuation mark: The lamp is old , but it works ."""
    return re.sub("([,.?])", r" \1", text)


def unended(text: str) -> str:
    """Return a text without its final mark: The old man loves the dog"""
    return text.rstrip(".?")


# Pairs of a change of case and a change of punctuation, except the pair that changes nothing.
WAYS = [*product((str, uncapitalized, str.lower), (str, spaced, unended))][1:]


def varied(
    pairs: Iterable[Pair], seed: int = 0, *, share: float = 0.25, joined: float = 0.15
) -> Iterator[Pair]:
    """Yield lines of one or more sentences, some with careless case and punctuation in the source.

    Targets are not changed: a sentence in lower case without a full stop has the same translation
    as a well-written one.

    Args:
        pairs: (source, target) sentences. Each occurs in one line, and their order is kept.
        seed: Seed of the random choices.
        share: Probability that the source of a line is changed in case, punctuation or both; all
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
