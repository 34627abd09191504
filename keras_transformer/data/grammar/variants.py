"""The sentences of the embedded corpus in the forms in which people type them: lower-cased, with
spaces before the punctuation, without the mark at the end, several in a line (`varied`)."""

import re
from collections.abc import Iterable, Iterator
from random import Random

from keras_transformer.data.grammar.phrases import pick
from keras_transformer.data.grammar.syntax import Pair, join


def as_it_is(text: str) -> str:
    """The text as it is."""
    return text


def uncapitalized(text: str) -> str:
    """the old man loves Anna."""
    return text[0].lower() + text[1:]


def spaced(text: str) -> str:
    """The lamp is old , but it still works ."""
    return re.sub("([,.?])", r" \1", text)


def unended(text: str) -> str:
    """The old man loves the dog"""
    return text.rstrip(".?")


WAYS = [
    (case, marks)
    for case in (as_it_is, uncapitalized, str.lower)
    for marks in (as_it_is, spaced, unended)
][1:]  # without the first, which changes nothing


def varied(
    pairs: Iterable[Pair], seed: int = 0, *, share: float = 0.25, joined: float = 0.15
) -> Iterator[Pair]:
    """Lines of one or more sentences, in a share of which the source is written carelessly.

    The target stays as it is: a lower-cased sentence without a full stop has the translation of
    the well-written one.

    Args:
        pairs: (source, target) sentences. Each is in one line, and their order is kept.
        seed: of what is varied and joined.
        share: the probability that the source of a line is varied: in case, in punctuation or in
            both, each combination as often as the others.
        joined: the probability that a line goes on with the next sentence; below 1.

    Yields:
        (source, target) lines, fewer than `pairs` where some are joined.

    Raises:
        ValueError: when `joined` is out of its range.
    """
    if not 0 <= joined < 1:
        raise ValueError(f"joined must be from 0 to below 1, got {joined}")
    rng, remaining = Random(seed), iter(pairs)
    for source, target in remaining:
        while rng.random() < joined:
            following = next(remaining, ("", ""))
            source, target = join(source, following[0]), join(target, following[1])
        if rng.random() < share:
            case, marks = pick(rng, WAYS)
            source = marks(case(source))
        yield source, target
