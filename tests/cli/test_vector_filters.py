"""Pairs that `clean --embedder` drops, with made-up vectors."""

from typing import ClassVar

import numpy as np
import pytest

from keras_transformer.cli import vector_filters as module

pytestmark = pytest.mark.once("the vectors are made up")

WORDS = {"dog": "Hund", "cat": "Katze", "bird": "Vogel", "horse": "Pferd", "cow": "Kuh"}


class Embedder:
    """Has the same random vector for a word and its translation."""

    texts: ClassVar[list[str]] = []

    @classmethod
    def load(cls, folder):
        return cls()

    def embed(self, texts):
        self.texts += texts
        vectors = np.random.default_rng(0).normal(size=(len(WORDS), 8)) + 1
        places = {x: i % len(WORDS) for i, x in enumerate([*WORDS, *WORDS.values()])}
        return vectors[[places[text] for text in texts]].astype("float32")


@pytest.fixture(autouse=True)
def embedder(monkeypatch):
    monkeypatch.setattr("keras_transformer.tasks.text_embedder.TextEmbedder", Embedder)
    monkeypatch.setattr(Embedder, "texts", [])


PAIRS = [*WORDS.items(), ("dog", "Katze"), ("cow", "Vogel")]
ROWS = [(*pair, None) for pair in PAIRS[:5]]
ROWS += [("x", "y", "empty"), *((*pair, None) for pair in PAIRS[5:])]


def by_hand(source, target):
    """The margin of a pair of words, with the four nearest of the five."""
    words = [*WORDS]
    vectors = Embedder().embed(words)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    x, y = words.index(source), [*WORDS.values()].index(target)
    return cosines[x, y] * 8 / sum(np.sort(cosines[i])[-4:].sum() for i in (x, y))


def test_margins():
    """Each of the repeated words is one neighbour."""
    margins = [by_hand(*pair) for pair in PAIRS]
    Embedder.texts.clear()
    for limit in np.sort(margins)[:-1] + 1e-4:
        rows = [*module.vector_filter("folder", None, limit)(ROWS)]
        assert rows[5] == ROWS[5]
        reasons = [row[2] for row in rows[:5] + rows[6:]]
        assert reasons == ["margin" if x < limit else None for x in margins]
    assert Embedder.texts[:10] == [*WORDS, *WORDS.values()]


def test_both_limits():
    """The cosine comes first."""
    rows = [*module.vector_filter("folder", 0.999, 0.0)(ROWS)]
    assert [row[2] for row in rows] == [*[None] * 5, "empty", "similarity", "similarity"]
    reasons = {row[2] for row in module.vector_filter("folder", 0.999, 9.0)(ROWS)}
    assert reasons == {"similarity", "margin", "empty"}
    assert [*module.vector_filter(None, None, None)(ROWS)] == ROWS


def test_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)
    sizes = []
    monkeypatch.setattr(Embedder, "embed", lambda self, x: sizes.append(len(x)) or np.eye(len(x)))
    for number in (0, 1, 4, 5, 6, 11):
        rows = [(f"a{i}", f"b{i}", None) for i in range(number)]
        assert [*module.vector_filter("folder", None, 0.5)(rows)] == rows
    assert sizes[::2] == sizes[1::2] == [1, 4, 5, 4, 2, 4, 4, 3]
    assert [*module.vector_filter("folder", None, 0.5)([("", "", "empty")])] == [("", "", "empty")]


@pytest.mark.parametrize("options", [("a", None, None), (None, 0.5, None), (None, None, 1.0)])
def test_options_that_go_together(options):
    with pytest.raises(ValueError, match="--embedder goes together with --min-similarity, --min-m"):
        module.vector_filter(*options)
