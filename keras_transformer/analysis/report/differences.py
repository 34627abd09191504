"""The words in which a translation differs from its reference."""

from __future__ import annotations

from difflib import SequenceMatcher

from keras_transformer.analysis.alignment import words

Parts = list[tuple[str, bool]]


def differences(reference: str, translation: str) -> tuple[Parts, Parts]:
    """Split both texts into parts, each with whether the other text lacks it in this place.

    Args:
        reference, translation: The texts; `alignment.words` splits them into words.

    Returns:
        The parts of the reference and of the translation; joined, they are the texts.
    """
    texts = reference, translation
    places = [words(text) for text in texts]
    sides = [[text[a:b] for a, b in own] for text, own in zip(texts, places, strict=True)]
    same: list[set[int]] = [set(), set()]
    for run in SequenceMatcher(None, *sides, autojunk=False).get_matching_blocks():
        for own, start in zip(same, (run.a, run.b), strict=True):
            own.update(range(start, start + run.size))
    first, second = (
        _parts(text, own, shared) for text, own, shared in zip(texts, places, same, strict=True)
    )
    return first, second


def _parts(text, places, shared):
    """Return the parts of a text; the space between two words that differ belongs to them."""
    parts: Parts = []
    at = 0
    for i, (start, end) in enumerate(places):
        differs = i not in shared
        if differs and parts and parts[-1][1]:
            parts[-1] = (text[at - len(parts[-1][0]) : end], True)
        else:
            if start > at:
                parts.append((text[at:start], False))
            parts.append((text[start:end], differs))
        at = end
    return [*parts, (text[at:], False)] if at < len(text) else parts
