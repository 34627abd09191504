"""Rules of contrastive pairs about clauses: what the wrong side has, lacks or repeats."""

import re

import pytest

from benchmarks.measures.contrast_clauses import PHENOMENA
from benchmarks.measures.contrastive_pairs import contrasts
from keras_transformer.demo.lexicon import WORDS
from tests.benchmarks.measures.test_contrast_rules import words

pytestmark = pytest.mark.once("texts: no tensor is read")
RELATIVES = {"der", "die", "das", "den", "dem", "denen"}
POSTURES = ("gelegt", "gestellt")


def changed(one):
    """Return the words that only the right, and that only the wrong side has."""
    right, wrong = ({*words(x)} for x in (one.right, one.wrong))
    return right - wrong, wrong - right


@pytest.mark.parametrize("phenomenon", PHENOMENA)
def test_a_seed_gives_the_same_sentences(phenomenon):
    found = contrasts(phenomenon, 40)
    assert found == contrasts(phenomenon, 60)[:40] != contrasts(phenomenon, 40, seed=1)
    assert all(x.english[-1] == x.right[-1] == x.wrong[-1] == "." for x in found)


def test_one_word_is_another():
    for one in contrasts("relative pronoun", 60):
        both = zip(words(one.right), words(one.wrong), strict=True)
        ((right, wrong),) = [pair for pair in both if pair[0] != pair[1]]
        assert {right, wrong} <= RELATIVES
    for one in contrasts("agreement across", 60):
        both = zip(words(one.right), words(one.wrong), strict=True)
        ((right, wrong),) = [pair for pair in both if pair[0] != pair[1]]
        assert {right, wrong} in ({"hat", "haben"}, {"ist", "sind"})
        assert right in ("hat", "ist") or one.right.startswith("Die ")
    for one in contrasts("posture", 60):
        assert one.right.endswith(tuple(f"{x}." for x in POSTURES))
        (right,), (wrong,) = changed(one)
        assert sorted((right, wrong)) == [*POSTURES]
    for one in contrasts("ordinals", 60):
        (right,), (wrong,) = changed(one)
        assert right.endswith("ten") and wrong.endswith("ten")


def test_by_hand():
    for one in contrasts("feminine owner", 60):
        word = re.search(r" der (\w+) war ", one.right)[1]
        assert re.search(rf" des {word}e?s war ", one.wrong)
    days = {german.lower() for _, german in WORDS["weekdays"]}
    for one in contrasts("habits", 60):
        right, wrong = changed(one)
        assert {x.removesuffix("s") for x in right} <= days and wrong - {"am"} <= days
    for one in contrasts("progressive", 60):
        assert " is " in one.english or " are " in one.english or " am " in one.english
        assert changed(one) == ({"gerade"}, set())


def test_what_is_left_out_or_said_twice():
    for one in contrasts("omission", 60):
        right, wrong = words(one.right), words(one.wrong)
        missing = len(right) - len(wrong)
        assert missing > 0
        assert any(right[:i] + right[i + missing :] == wrong for i in range(len(right)))
    for one in contrasts("repetition", 60):
        right, wrong = words(one.right), words(one.wrong)
        again = len(wrong) - len(right)
        places = [i for i in range(len(wrong)) if wrong[:i] + wrong[i + again :] == right]
        assert places
        (start,) = places[:1]
        said = " ".join(wrong[start : start + again])
        assert " ".join(wrong).count(said) == 2
