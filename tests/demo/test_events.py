"""Random events of the embedded corpus: tenses, objects and times that suit the verb."""

from random import Random

import pytest

from keras_transformer.demo.events import (
    RIDES,
    complements,
    event,
    future,
    habit,
    happening,
    past,
    reason,
    state,
)
from keras_transformer.demo.phrases import named
from keras_transformer.demo.syntax import Part, pronoun
from tests.demo.words import VERBS

ANNA = named("Anna")


def drawn(draw, *arguments, **options):
    """Return 500 results of a function that draws."""
    rng = Random(0)
    return [draw(rng, *arguments, **options) for _ in range(500)]


def slots(clause):
    return [part.slot for part in clause.parts]


@pytest.mark.parametrize(
    "infinitive,number", [("schlafen", 0), ("anrufen", 1), ("geben", 2), ("warten", 1)]
)
def test_a_verb_has_the_objects_that_it_governs(infinitive, number):
    assert {len(parts) for parts in drawn(complements, VERBS[infinitive], ANNA)} == {number}


def test_an_object_with_a_preposition():
    for (part,) in drawn(complements, VERBS["warten"], ANNA):
        assert part.slot == "prepositional"
        assert part.english.startswith("for ") and part.german.startswith("auf ")


@pytest.mark.parametrize("timed,expected", [(0.0, {0}), (1.0, {1})])
@pytest.mark.parametrize("draw", [past, future])
def test_a_time_is_there_as_often_as_asked(draw, timed, expected):
    found = drawn(draw, ANNA, timed)
    assert {slots(clause).count("time") for clause in found} == expected


def test_past_and_future():
    assert {clause.tense for clause in drawn(past, ANNA)} == {"past"}
    for clause in drawn(future, ANNA):
        english, german = clause.main()
        assert english.startswith("Anna will ") and german.startswith("Anna wird ")


def test_a_habit_has_a_time_or_a_frequency():
    for clause in drawn(habit, ANNA):
        assert (clause.frequency is None) == ("time" in slots(clause))


@pytest.mark.parametrize("pool,use", [("progressive", "p"), ("state", "H"), ("clock", "e")])
def test_verbs_come_from_the_pool(pool, use):
    found = {clause.verb.infinitive: clause.verb for clause in drawn(event, ANNA, pool=pool)}
    assert len(found) > 2
    assert all(use in verb.uses for verb in found.values())


def test_a_given_verb_and_no_place():
    for clause in drawn(event, ANNA, verb=VERBS["kaufen"], where=0.0):
        assert clause.verb == VERBS["kaufen"] and "place" not in slots(clause)


def test_rides():
    assert Part("by train", "mit dem Zug", "manner") in RIDES
    assert Part("by car", "mit dem Auto", "manner") in RIDES


@pytest.mark.parametrize(
    "who,own", [(pronoun("I", "I"), {"mich", "mir", "uns"}), (ANNA, {"Anna"})], ids=["I", "Anna"]
)
def test_nobody_does_something_to_himself(who, own):
    found = [part.german for clause in drawn(happening, who) for part in clause.parts]
    assert not own & set(found)


def test_a_negated_event_says_so_in_both_languages():
    for clause in drawn(happening, ANNA, negated=True):
        english, german = clause.main()
        assert " not " in english or "cannot" in english
        assert " nicht" in german or " kein" in german


def test_states():
    assert state(ANNA, ("tired", "müde")).main() == ("Anna is tired", "Anna ist müde")
    assert state(ANNA, ("tired", "müde"), "past").main() == ("Anna was tired", "Anna war müde")


@pytest.mark.parametrize(
    "lead,tense", [("because", "past"), ("although", "past"), ("if", "present")]
)
def test_a_reason_has_the_tense_of_its_conjunction(lead, tense):
    found = drawn(reason, pronoun("she", "she"), lead)
    assert {clause.tense for clause in found} == {tense}
    rain = {clause.main()[0] for clause in found if clause.subject.english == "it"}
    assert rain == {"because": set(), "although": {"it rained", "it snowed"}}.get(
        lead, {"it rains", "it snows"}
    )
