"""The most similar vectors, in plain NumPy."""

import numpy as np
import pytest

from keras_transformer.tasks import similarity
from keras_transformer.tasks.similarity import Match, matches, nearest

pytestmark = pytest.mark.once("no tensor")


def expected_scores(queries, candidates, name):
    differences = queries[:, None] - candidates[None]
    return {
        "dot": queries @ candidates.T,
        "cosine": (queries @ candidates.T)
        / np.linalg.norm(queries, axis=1)[:, None]
        / np.linalg.norm(candidates, axis=1),
        "euclidean": -np.sqrt((differences**2).sum(-1)),
        "manhattan": -np.abs(differences).sum(-1),
    }[name]


@pytest.mark.parametrize("block", [3, 7, 100])
@pytest.mark.parametrize("name", ["dot", "cosine", "euclidean", "manhattan"])
def test_nearest_by_blocks(block, name, monkeypatch):
    monkeypatch.setattr(similarity, "BLOCK", block)
    generator = np.random.default_rng(0)
    queries, candidates = (generator.normal(size=(n, 4)).astype("float32") for n in (5, 23))
    scores = expected_scores(queries, candidates, name)
    for top_k in (1, 4, 23, 30):
        best, found = nearest(queries, candidates, top_k, name)
        expected = np.argsort(-scores, axis=1)[:, :top_k]
        np.testing.assert_array_equal(best, expected)
        np.testing.assert_allclose(found, np.take_along_axis(scores, expected, 1), atol=1e-5)
    first = matches(queries, candidates, 2, name)[4][0]
    assert first == Match(int(np.argmax(scores[4])), pytest.approx(scores[4].max(), abs=1e-5))
