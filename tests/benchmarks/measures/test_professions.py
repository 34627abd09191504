"""Sentences whose pronoun tells the gender of a profession."""

import re
from collections import Counter

import pytest

from benchmarks.measures.professions import (
    FORMS,
    STEREOTYPES,
    gendered_pairs,
)

pytestmark = pytest.mark.once("text alone")
# The words that refer to the person, by rule and gender.
CUES = {"female": {"she", "her"}, "male": {"he", "his"}}


@pytest.fixture(scope="module")
def told():
    return gendered_pairs(3000, seed=1)


def test_german_has_the_form_of_the_gender_and_only_that(told):
    for english, german, profession, gender in told:
        words = re.findall(r"\w+", german)
        own, other = (FORMS[profession][x] for x in (gender, ({*CUES} - {gender}).pop()))
        assert words.count(own) == 1 and other not in words, german
        assert english.lower().count(profession) == 1
        article = "die" if gender == "female" else "der"
        assert re.search(rf"\b{article} (\w+ )?{own}\b", german, re.IGNORECASE), german


def test_english_tells_the_gender(told):
    for english, _, _, gender in told:
        assert CUES[gender] & {*re.findall(r"\w+", english.lower())}, english


def test_all_professions_and_both_genders_are_as_frequent(told):
    counts = Counter((x.profession, x.gender) for x in told)
    assert counts.keys() == {(x, y) for x in STEREOTYPES for y in CUES}
    assert all(100 < x < 210 for x in counts.values()), counts  # 150 expected
    assert Counter(STEREOTYPES.values()) == {"female": 5, "male": 5}


def test_a_gender_can_have_any_frequency():
    female = {name: float(gender == "female") for name, gender in STEREOTYPES.items()}
    assert all(x.gender == STEREOTYPES[x.profession] for x in gendered_pairs(200, female=female))
    assert {x.gender for x in gendered_pairs(50, female=0.0)} == {"male"}


def test_sentences_that_do_not_tell():
    found = gendered_pairs(500, told=False)
    assert {x.gender for x in found} == {"female", "male"}
    words = {word for x in found for word in re.findall(r"\w+", x.english.lower())}
    assert not words & {"he", "him", "his", "she", "her"}


def test_a_seed_gives_the_same_sentences_and_no_sentence_occurs_twice(told):
    assert gendered_pairs(300, seed=1) == told[:300]
    assert gendered_pairs(300, seed=2) != told[:300]
    assert len({x.english for x in told}) == len(told)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(count=0), "count must be at least 1, got 0"),
        (dict(count=1, female=1.5), "female must be in"),
        (dict(count=1, female={"doctor": 0.5}), "female must be of"),
    ],
    ids=["none", "probability", "professions"],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        gendered_pairs(**options)
