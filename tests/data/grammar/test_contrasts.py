"""Pairs of translations that differ in one point: by hand, and that each rule keeps its promise."""

import re

import pytest

from keras_transformer.data.grammar.contrasts import PHENOMENA, contrasts

pytestmark = pytest.mark.once("texts: no tensor is read")


def words(text):
    return re.findall(r"\w+", text.lower())


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_two_hundred_sentences_each_once(phenomenon):
    found = contrasts(phenomenon, 200)
    assert len({x.english for x in found}) == 200
    assert all(x.right != x.wrong for x in found)
    assert contrasts(phenomenon, 20) == found[:20]
    assert contrasts(phenomenon, 20, seed=1) != found[:20]
    for text in (text for x in found for text in x):
        assert re.fullmatch(r"[A-ZÄÖÜ].*\.", text) and "  " not in text


SAME_LENGTH = [x for x in [*PHENOMENA][:10] if x != "case after preposition"] + [
    "verb last",
    "verb second",
    "numerals",
    "clock times",
]


@pytest.mark.parametrize("phenomenon", SAME_LENGTH)
def test_one_word_or_the_order_differs(phenomenon):
    for one in contrasts(phenomenon, 50):
        right, wrong = words(one.right), words(one.wrong)
        if phenomenon in ("verb last", "verb second"):
            assert sorted(right) == sorted(wrong)
        else:
            assert len(right) == len(wrong)
            differ = [pair for pair in zip(right, wrong, strict=True) if pair[0] != pair[1]]
            assert 1 <= len(differ) <= 3  # article, adjective, noun


def test_by_hand():
    def has(phenomenon, right, wrong):
        return all(
            re.search(right, x.right) and re.search(wrong, x.wrong)
            for x in contrasts(phenomenon, 30)
        )

    assert has("negation", r"\bnicht\b", r"^(?!.*nicht).*$")
    for one in contrasts("auxiliary", 30):
        sein = {"bin", "bist", "ist", "sind"}
        assert bool(sein & {*words(one.right)}) != bool(sein & {*words(one.wrong)})
    for one in contrasts("case after preposition", 30):
        assert {"dem", "der", "im", "am"} & {*words(one.wrong)}
    for one in contrasts("clock times", 30):
        assert (
            re.search(r"um halb (\w+)", one.right)[1] != re.search(r"um halb (\w+)", one.wrong)[1]
        )
    one = next(x for x in contrasts("numerals", 200) if "twenty-three" in x.english)
    assert "dreiundzwanzig" in one.right and "zweiunddreißig" in one.wrong


def test_bad_input():
    with pytest.raises(ValueError, match=r"phenomenon must be one of \['agreement', .*got 'mood'"):
        contrasts("mood")
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        contrasts("case", 0)
    with pytest.raises(ValueError, match="count must be at most about .*all the rule yields"):
        contrasts("gender", 10_000)
