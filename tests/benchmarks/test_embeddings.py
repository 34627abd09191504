"""Embedders of several languages: the planted pairs, and the measures."""

import numpy as np
import pytest

from benchmarks.embeddings import best_f1, by_cosine, cleaning, half_wrong

pytestmark = pytest.mark.once("arrays and texts")


def test_planted_pairs():
    pairs = [("a", "u v w x"), ("b", "k l m"), ("c", "p")]
    assert half_wrong(pairs) == [("a", "u v l m"), ("b", "k p"), ("c", "w x")]


def test_measures():
    precision, recall, f1 = best_f1(np.array([1, 1, 0, 1, 0, 0]), 4)
    assert (precision, recall) == (3 / 4, 3 / 4) and f1 == pytest.approx(3 / 4)
    sources, targets = np.array([[1, 0], [1, 1.0]]), np.array([[1, 0.9], [1, 0.2]])
    x, y = by_cosine(sources, targets)
    assert (x.tolist(), y.tolist()) == ([1, 0], [0, 1])


def test_what_a_limit_finds():
    class Embedder:
        def embed(self, texts):
            return np.array([np.roll([1.0, 0.5, 0, 0, 0, 0], "abcdef".index(x)) for x in texts])

    good = [(x, x) for x in "abcdef" * 20]
    rows = cleaning(Embedder(), good, ([("a", "d")], [("b", "b"), ("c", "f")]))
    assert [row[1:] for row in rows] == [
        *[["1 of 1", "1 of 2", "1"]] * 2, *[["1 of 1", "1 of 2", "5"]] * 2
    ]  # fmt: skip
    assert [row[0][:12] for row in rows] == ["similarity b", "margin below"] * 2
