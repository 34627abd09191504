"""Rules of contrastive pairs: by hand, and that right and wrong differ in what they say."""

import re

import pytest

from benchmarks.measures.contrastive_pairs import PHENOMENA, contrasts

pytestmark = pytest.mark.once("texts: no tensor is read")


def words(text):
    return re.findall(r"\w+", text.lower())


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


def test_people_and_their_words_by_hand():
    for one in contrasts("feminine", 60):
        is_woman = one.right.rstrip(".").endswith(("in", "frau"))
        assert is_woman != one.wrong.rstrip(".").endswith(("in", "frau"))
    for one in contrasts("agreement last", 60):
        assert re.search(r", ob ", one.right) and " sich " not in one.right
        assert one.right.split()[:-1] == one.wrong.split()[:-1]  # only the last word differs
    for one in contrasts("dative", 60):
        assert " dem " in one.right and " dem " not in one.wrong
    for one in contrasts("genitive ending", 60):
        (word,) = set(one.right.split()) - set(one.wrong.split())
        assert word.endswith("s")
    for one in contrasts("question word", 60):
        assert one.right.endswith("?") and one.right.startswith("Wo") and one.wrong.startswith("Wo")
