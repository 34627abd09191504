"""Contrastive pairs: as many as asked for, each once, and bad input."""

import re

import pytest

from benchmarks.measures.contrastive_pairs import PHENOMENA, contrasts

pytestmark = pytest.mark.once("texts: no tensor is read")


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_two_hundred_sentences_each_once(phenomenon):
    found = contrasts(phenomenon, 200)
    assert len({x.english for x in found}) == 200
    assert all(x.right != x.wrong for x in found)
    assert contrasts(phenomenon, 20) == found[:20]
    assert contrasts(phenomenon, 20, seed=1) != found[:20]
    for text in (text for x in found for text in x):
        assert re.fullmatch(r"[A-ZÄÖÜ].*[.?]", text) and "  " not in text


def test_bad_input():
    with pytest.raises(ValueError, match=r"phenomenon must be one of \['agreement', .*got 'mood'"):
        contrasts("mood")
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        contrasts("case", 0)
    with pytest.raises(ValueError, match="at most about .*all that the grammar yields"):
        contrasts("gender", 10_000)
