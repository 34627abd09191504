"""Retrieval of paraphrases: BM25 by hand, the groups, and the measures."""

import gzip
import math

import numpy as np
import pytest

from benchmarks.retrieval import bm25, measured, paraphrases, split

pytestmark = pytest.mark.once("arrays and texts")


def test_bm25():
    corpus = ["a b", "a c c", "d"]
    scores = bm25(corpus)("A c, c")
    rarity_a, rarity_c = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)
    norms = [1.5 * (0.25 + 0.75 * length / 2) for length in (2, 3)]
    expected = rarity_a * 2.5 / (1 + norms[0])
    assert scores[0] == pytest.approx(expected)
    expected = rarity_a * 2.5 / (1 + norms[1]) + rarity_c * 2 * 2.5 / (2 + norms[1])
    assert scores[1] == pytest.approx(expected) and scores[2] == 0


def test_groups_and_measures(tmp_path):
    for side, lines in dict(en=["A.", "B.", "a", "C.", "D."], de=["x", "x", "x", "y", "y"]).items():
        (tmp_path / f"train.{side}.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    groups = paraphrases(tmp_path)
    assert sorted(groups) == [["A.", "B."], ["C.", "D."]]  # "a" is "A." again
    queries, corpus, relevant = split(groups, 1, 3)
    assert len(queries) == 1 and len(corpus) == 3 and relevant == [{0}]
    assert not {*queries} & {*corpus}
    scores = np.array([[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]])
    assert measured(scores, [{0, 2}, {1, 2}]) == (0.5, 0.75)
