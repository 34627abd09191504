"""Accuracy on contrastive pairs: with scores by hand, and of a small model."""

from typing import NamedTuple

import pytest

from benchmarks.measures.contrastive import contrastive_accuracy
from tests.small_translator import made_tokenizer, make


class Pair(NamedTuple):
    english: str
    right: str
    wrong: str


class Table:
    """A translator whose scores are in a table."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, sources, targets, *, tokens_per_batch):
        return [self.scores[pair] for pair in zip(sources, targets, strict=True)]


def test_scores_by_hand():
    scores = {("a", "x"): -1.0, ("a", "y"): -2.0, ("b", "x"): -3.0, ("b", "y"): -1.0}
    scores |= {("c", "x"): -2.0, ("c", "y"): -2.0}
    suite = {
        "one": [Pair("a", "x", "y"), Pair("b", "x", "y")],
        "two": [Pair("a", "x", "y")],
        "a tie is wrong": [Pair("c", "x", "y")],
    }
    found = contrastive_accuracy(Table(scores), suite)
    assert found == {"one": 50.0, "two": 100.0, "a tie is wrong": 0.0}


def test_what_a_model_prefers_is_right():
    translator = make(made_tokenizer())
    texts = ["one two", "three", "four five"]
    best = translator.translate(texts, max_extra_length=6)
    pairs = [Pair(text, x, "nine " + x) for text, x in zip(texts, best, strict=True)]
    right, wrong = (translator.score(texts, [x[i] for x in pairs]) for i in (1, 2))
    expected = 100 * sum(a > b for a, b in zip(right, wrong, strict=True)) / 3
    assert contrastive_accuracy(translator, {"all": pairs}) == {"all": pytest.approx(expected)}


def test_bad_input():
    with pytest.raises(ValueError, match=r"suite\['none'\] must be one or more pairs, got \[\]"):
        contrastive_accuracy(Table({}), {"none": []})
