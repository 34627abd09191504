"""Gender of translated nouns, and WinoMT's scores, worked out by hand."""

import pytest

from benchmarks.measures.gender import gender_of, gender_scores

pytestmark = pytest.mark.once("counts of words")
FORMS = {"male": "Arzt", "female": "Ärztin"}


@pytest.mark.parametrize(
    "text,gender",
    [
        ("Die Ärztin hat geschlafen.", "female"),
        ("der arzt, der schläft", "male"),
        ("Die Bäckerin schläft.", None),
        ("Der Arzt und die Ärztin schlafen.", None),
        ("Die Zahnärztin und der Arztbesuch", None),
        ("", None),
    ],
)
def test_whole_words_tell_the_gender(text, gender):
    assert gender_of(text, FORMS) == gender


def test_a_gender_may_have_several_forms():
    forms = {"male": ["Student", "Studenten"], "female": ["Studentin"]}
    assert gender_of("dem Studenten", forms) == "male"


def test_scores_by_hand():
    #         with the stereotype | against it
    expected = ["male", "male", "female", "female", "male", "female", "female", "female"]
    found = ["male", "male", "female", "female", "male", "male", "male", None]
    other = {"male": "female", "female": "male"}
    scores = gender_scores(found, expected, expected[:4] + [other[x] for x in expected[4:]])
    assert scores["accuracy"] == pytest.approx(100 * 5 / 8)
    assert scores["unknown"] == pytest.approx(100 / 8)
    # male: 3 right, 5 found, 3 expected; female: 2 right, 2 found, 5 expected
    assert scores["f1_male"] == pytest.approx(100 * 6 / 8)
    assert scores["f1_female"] == pytest.approx(100 * 4 / 7)
    assert scores["delta_g"] == pytest.approx(100 * (6 / 8 - 4 / 7))
    # with it, both are 100 %; against it, male: 1 right, 3 found, 1 expected; female: none right
    assert scores["delta_s"] == pytest.approx(100 - (50 + 0) / 2)


def test_a_perfect_translator_is_unbiased():
    genders = ["male", "female"] * 2
    scores = gender_scores(genders, genders, ["male", "male", "female", "female"])
    assert (scores["accuracy"], scores["delta_g"], scores["delta_s"]) == (100, 0, 0)


def test_a_stereotype_alone_is_a_bias_of_100():
    stereotypes = ["male", "male", "female", "female"]
    scores = gender_scores(stereotypes, ["male", "female"] * 2, stereotypes)
    assert (scores["accuracy"], scores["delta_g"], scores["delta_s"]) == (50, 0, 100)


@pytest.mark.parametrize(
    "arguments,message",
    [
        ((["male"], ["male", "male"], ["male", "male"]), "of the same length, got (1, 2, 2)"),
        ((["male"] * 2, ["male"] * 2, ["male"] * 2), "some with and some against the stereotype"),
        ((["he"] * 2, ["male"] * 2, ["male", "female"]), "must be one of ('male', 'female')"),
        ((["male"] * 2, ["m"] * 2, ["male", "female"]), "got {'m'}"),
        (([], [], []), "some with and some against"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError) as caught:
        gender_scores(*arguments)
    assert message in str(caught.value)
