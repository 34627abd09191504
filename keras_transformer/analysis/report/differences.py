"""Comparison of a translation with its reference, word by word."""

from __future__ import annotations

from difflib import SequenceMatcher

from keras_transformer.text.word_spans import words

Parts = list[tuple[str, bool]]


def differences(reference: str, translation: str) -> tuple[Parts, Parts]:
    """Split both texts into parts that are equal in both texts, and parts that differ.

    Args:
        reference, translation: The texts; `word_spans.words` splits them into words.

    Returns:
        For the reference and for the translation, pairs of a part and whether it differs. Joined,
        the parts are the text.
    """
    texts = reference, translation
    places = [words(text) for text in texts]
    sides = [[text[a:b] for a, b in spans] for text, spans in zip(texts, places, strict=True)]
    same: list[set[int]] = [set(), set()]
    for run in SequenceMatcher(None, sides[0], sides[1], autojunk=False).get_matching_blocks():
        for indices, start in zip(same, (run.a, run.b), strict=True):
            indices.update(range(start, start + run.size))
    first, second = (
        _parts(text, spans, shared) for text, spans, shared in zip(texts, places, same, strict=True)
    )
    return first, second


def _parts(text, places, shared):
    """Return the parts of a text; successive words that differ are one part, spaces included."""
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
