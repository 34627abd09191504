"""Random events of the embedded grammar: tenses, objects and times that suit the verb."""

import pytest

from keras_transformer.demo.events import Events
from keras_transformer.demo.phrases import named
from keras_transformer.demo.syntax import pronoun, state
from tests.demo.words import VERBS

ANNA = named("Anna")


def drawn(draw, *arguments, **options):
    """Return 500 results of a function that draws."""
    generator = Events(0)
    return [draw(generator, *arguments, **options) for _ in range(500)]


def slots(clause):
    return [part.slot for part in clause.parts]


@pytest.mark.parametrize(
    "infinitive,number", [("schlafen", 0), ("anrufen", 1), ("geben", 2), ("warten", 1)]
)
def test_a_verb_has_the_objects_that_it_governs(infinitive, number):
    assert {len(parts) for parts in drawn(Events.complements, VERBS[infinitive], ANNA)} == {number}


def test_an_object_with_a_preposition():
    for (part,) in drawn(Events.complements, VERBS["warten"], ANNA):
        assert part.slot == "prepositional"
        assert part.english.startswith("for ") and part.german.startswith("auf ")


@pytest.mark.parametrize("timed,expected", [(0.0, {0}), (1.0, {1})])
@pytest.mark.parametrize("draw", [Events.past, Events.future])
def test_a_time_is_there_as_often_as_asked(draw, timed, expected):
    found = drawn(draw, ANNA, timed)
    assert {slots(clause).count("time") for clause in found} == expected


def test_past_and_future():
    assert {clause.tense for clause in drawn(Events.past, ANNA)} == {"past"}
    for clause in drawn(Events.future, ANNA):
        english, german = clause.main()
        assert english.startswith("Anna will ") and german.startswith("Anna wird ")


def test_a_habit_has_a_time_or_a_frequency():
    for clause in drawn(Events.habit, ANNA):
        assert (clause.frequency is None) == ("time" in slots(clause))


@pytest.mark.parametrize("pool", ["progressive", "state", "clock"])
def test_verbs_come_from_the_pool(pool):
    found = {clause.verb.infinitive: clause.verb for clause in drawn(Events.event, ANNA, pool=pool)}
    assert len(found) > 2
    assert all(pool in verb.uses for verb in found.values())


def test_a_given_verb_and_no_place():
    for clause in drawn(Events.event, ANNA, verb=VERBS["kaufen"], where=0.0):
        assert clause.verb == VERBS["kaufen"] and "place" not in slots(clause)


@pytest.mark.parametrize(
    "who,own", [(pronoun("I", "I"), {"mich", "mir", "uns"}), (ANNA, {"Anna"})], ids=["I", "Anna"]
)
def test_nobody_does_something_to_himself(who, own):
    found = [part.german for clause in drawn(Events.happening, who) for part in clause.parts]
    assert not own & set(found)


def test_a_negated_event_says_so_in_both_languages():
    for clause in drawn(Events.happening, ANNA, negated=True):
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
    found = drawn(Events.reason, pronoun("she", "she"), lead)
    assert {clause.tense for clause in found} == {tense}
    rain = {clause.main()[0] for clause in found if clause.subject.english == "it"}
    assert rain == {"because": set(), "although": {"it rained", "it snowed"}}.get(
        lead, {"it rains", "it snows"}
    )
