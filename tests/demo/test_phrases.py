"""Random phrases of the embedded corpus: what all of them have in common, and forms by hand."""

from collections import Counter

import pytest

from keras_transformer.demo.inflection import counting
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND
from keras_transformer.demo.phrases import Draw, contract, distinct, named
from keras_transformer.demo.syntax import noun_phrase, pronoun
from tests.demo.words import noun


def drawn(draw, *arguments, **options):
    """Return 2,000 results of a function that draws."""
    generator = Draw(0)
    return [draw(generator, *arguments, **options) for _ in range(2000)]


def pairs(parts):
    return {(part.english, part.german) for part in parts}


def test_contractions():
    assert contract("in", "dem alten Garten") == "im alten Garten"
    assert contract("an", "das Fenster") == "ans Fenster"
    assert contract("zu", "der Bank") == "zur Bank"
    assert contract("in", "der Küche") == "in der Küche"
    assert contract("in", "diesem Garten") == "in diesem Garten"
    assert contract("auf", "Anna") == "auf Anna"


def test_each_choice_is_equally_probable():
    counts = Counter(drawn(Draw.pick, "abcd"))
    assert counts.keys() == set("abcd")
    assert all(400 < count < 600 for count in counts.values())  # five standard deviations


def test_an_adjective_suits_its_noun():
    assert set(drawn(Draw.suited, noun("coat"), 0.0)) == {None}
    suiting = ADJECTIVES_BY_KIND[noun("coat").kind]
    assert {a.english for a in drawn(Draw.suited, noun("coat"), 1.0)} == {
        a.english for a in suiting
    }


@pytest.mark.parametrize(
    "other", [named("Anna"), pronoun("she", "she"), noun_phrase("the", None, noun("aunt"))]
)
def test_a_subject_differs_from_the_other(other):
    found = [who.about for who in drawn(Draw.subject, other=other)]
    assert other.about not in found
    assert other.about in [who.about for who in drawn(Draw.subject)]


@pytest.mark.parametrize(
    "row,excluded", [("I", {"I", "we"}), ("she", {"she"}), ("we", {"I", "we"})]
)
def test_no_object_is_a_pronoun_that_would_be_reflexive(row, excluded):
    found = drawn(Draw.somebody, "acc", pronoun(row, row))
    rows = {phrase.english_row for phrase in found if phrase.slot == "pronoun"}
    assert rows and not rows & excluded


def test_pronouns_have_the_case_of_the_verb():
    found = drawn(Draw.somebody, "dat", named("Peter"))
    german = {phrase.german for phrase in found if phrase.slot == "pronoun"}
    assert german == {"mir", "dir", "ihr", "uns"}  # ihm would be himself


@pytest.mark.parametrize("negated", [False, True])
def test_an_indefinite_object_is_negated_by_kein(negated):
    found = drawn(Draw.thing, "goods", "acc", named("Anna"), negated)
    german = {x.german.split()[0] for x in found if x.english.startswith(("a ", "an "))}
    assert german == ({"kein", "keine", "keinen"} if negated else {"ein", "eine", "einen"})


def test_numbers_and_owners():
    eggs = noun_phrase(counting(3), None, noun("egg"), "dat", plural=True)
    assert (eggs.english, eggs.german) == ("three eggs", "drei Eiern")
    found = pairs(drawn(Draw.possessor))
    assert ("the neighbour", "des Nachbarn") in found and ("my aunt", "meiner Tante") in found


def test_towns_and_countries():
    assert pairs(drawn(Draw.place, ("TOWN",))) >= {
        ("in Berlin", "in Berlin"), ("in Switzerland", "in der Schweiz")
    }  # fmt: skip
    assert pairs(drawn(Draw.place, ("TOWN",), direction=True)) >= {
        ("to Berlin", "nach Berlin"), ("to Switzerland", "in die Schweiz")
    }  # fmt: skip


def test_the_case_tells_a_place_from_a_direction():
    lying, laid = (pairs(drawn(Draw.spot, case, noun("cat"))) for case in ("dat", "acc"))
    assert ("on the table", "auf dem Tisch") in lying and (
        "under the bed",
        "unter dem Bett",
    ) in lying
    assert ("on the table", "auf den Tisch") in laid and ("under the bed", "unter das Bett") in laid
    assert {english for english, _ in lying} == {english for english, _ in laid}


def test_nothing_is_on_itself():
    assert not [x for x in drawn(Draw.spot, "dat", noun("table")) if x.english.endswith(" table")]


def test_times():
    past, future, habit = (pairs(drawn(Draw.time, tense)) for tense in ("past", "future", "habit"))
    assert ("yesterday", "gestern") in past and ("tomorrow", "morgen") in future
    assert ("two days ago", "vor zwei Tagen") in past and ("in two days", "in zwei Tagen") in future
    assert ("on Monday", "am Montag") in past & future
    assert ("on Mondays", "montags") in habit
    assert not past & habit and not future & habit
    assert not {("last week", "letzte Woche")} & past  # only with verbs of the use "far"
    assert ("last week", "letzte Woche") in pairs(drawn(Draw.time, "past", ["far"]))


def test_a_clock_time_stands_alone_or_after_a_day():
    found = pairs(drawn(Draw.time, "past", ["clock"]))
    timed = {english: german for english, german in found if "at " in english}
    assert any(english.startswith("at ") for english in timed)
    assert any(english.startswith(("on ", "yesterday")) for english in timed)
    assert all("um " in german for german in timed.values())


def test_results_are_distinct():
    generator = Draw(0)
    found = distinct(20, lambda: (f"{generator.whole(1, 20)}", "same"))
    assert len({name for name, _ in found}) == 20
    with pytest.raises(ValueError, match="count must be at most about 20, .* got 21"):
        distinct(21, lambda: (f"{generator.whole(1, 20)}", "same"))
