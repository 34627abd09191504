"""Tests of keras_transformer.data.near_duplicates."""

import builtins

import pytest

from keras_transformer.data.near_duplicates import NearDuplicateFilter

PAIR = (
    "The old man walks his big brown dog along the river every single morning.",
    "Der alte Mann geht jeden Morgen mit seinem großen braunen Hund am Fluss spazieren.",
)
OTHER = (
    "Two children are playing with a red ball in the garden of their aunt.",
    "Zwei Kinder spielen im Garten ihrer Tante mit einem roten Ball.",
)


def similarity(one, other):
    """Jaccard's, of the sets that the filter hashes, made in another way."""

    def ngrams(pair):
        plain = [" " + " ".join("".join(c if c.isalnum() else " " for c in x.lower()).split()) + " "
                 for x in pair]  # fmt: skip
        return {(i, *x) for i, text in enumerate(plain) for x in zip(*[text[k:] for k in range(4)],
                strict=False)}  # fmt: skip

    a, b = ngrams(one), ngrams(other)
    return len(a & b) / len(a | b)


def test_nearly_equal_pairs_go_and_others_stay():
    drop = NearDuplicateFilter(0.7)
    shouted = (PAIR[0].upper().replace(" ", " - "), PAIR[1].lower())
    changed = (PAIR[0].replace("brown", "black"), PAIR[1])
    assert similarity(PAIR, shouted) > 0.95 and similarity(PAIR, changed) > 0.85
    assert drop(*PAIR) is None
    assert drop(*OTHER) is None
    assert drop(*shouted) == drop(*changed) == drop(*PAIR) == "near_duplicate"


def test_only_one_side_is_equal():
    drop = NearDuplicateFilter(0.8)
    halves = (PAIR[0], OTHER[1])
    assert similarity(PAIR, halves) < 0.5
    assert drop(*PAIR) is None and drop(*halves) is None
    assert drop("a", "b") is None and drop("b", "a") is None  # shorter than an n-gram


@pytest.mark.parametrize("threshold", [0, 1, -0.5, float("nan")])
def test_thresholds_are_checked(threshold):
    with pytest.raises(ValueError, match="threshold must be above 0 and below 1, got"):
        NearDuplicateFilter(threshold)


def test_without_the_extra(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "datasketch":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match='finding near duplicates needs the extra "clean"'):
        NearDuplicateFilter(0.8)
