"""Patterns of two clauses: word order and pronouns by hand, and conjunctions in both languages."""

import re

import pytest

from keras_transformer.demo.compound import (
    RULES,
    contrasted,
    coordinated,
    handed_on,
    intended,
    judged,
    meanwhile,
    ordered,
    purposed,
    reasoned,
    reported,
)
from keras_transformer.demo.events import Events, state
from keras_transformer.demo.lexicon import NAMED_VERBS
from keras_transformer.demo.phrases import named
from keras_transformer.demo.syntax import Clause, Phrase, noun_phrase, pronoun, pronoun_for
from tests.demo.words import VERBS, her, noun

ANNA, PETER = named("Anna"), named("Peter")


def drawn(rule):
    """Return 500 sentences of a pattern."""
    draw = Events(0)
    return [rule(draw) for _ in range(500)]


def because(first):
    """Anna called her brother because she was tired; `first`: the reason comes first."""
    calling = Clause(ANNA, VERBS["anrufen"], [her("brother")], "past")
    tired = state(pronoun("she", "she"), ("tired", "müde"), "past")
    return ordered(Events(0), calling, ("because", "weil"), tired, first)


def test_the_subordinate_clause_is_verb_final():
    assert because(0) == (
        "Anna called her brother because she was tired.",
        "Anna hat ihren Bruder angerufen, weil sie müde war.",
    )


def test_in_front_it_has_the_noun_and_the_main_clause_begins_with_its_verb():
    assert because(1) == (
        "Because Anna was tired, she called her brother.",
        "Weil Anna müde war, hat sie ihren Bruder angerufen.",
    )


def test_a_pronoun_has_the_gender_of_the_german_noun():
    lamp = noun_phrase("the", None, noun("lamp"))
    works = Clause(pronoun_for(lamp), NAMED_VERBS["work funktionieren"], [])
    works.frequency = ("still", "noch")
    assert contrasted(state(lamp, ("old", "alt")), works) == (
        "The lamp is old, but it still works.",
        "Die Lampe ist alt, aber sie funktioniert noch.",
    )


def test_the_auxiliary_is_repeated_only_if_it_changes():
    def buying():
        egg = noun_phrase("a", None, noun("egg"), "acc")
        return Clause(PETER, VERBS["kaufen"], [egg], "past")

    calling = Clause(PETER, VERBS["anrufen"], [Phrase("Anna", "Anna", "definite")], "past")
    assert coordinated(buying(), calling) == (
        "Peter bought an egg and called Anna.",
        "Peter hat ein Ei gekauft und Anna angerufen.",
    )
    town = Phrase("to Berlin", "nach Berlin", "direction")
    going = Clause(PETER, VERBS["fahren"], [town], "past")
    assert coordinated(going, buying()) == (
        "Peter travelled to Berlin and bought an egg.",
        "Peter ist nach Berlin gefahren und hat ein Ei gekauft.",
    )


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=lambda rule: rule.__name__)
def test_a_sentence_has_a_capital_and_the_same_mark_in_both_languages(rule):
    found = drawn(rule)
    assert len(set(found)) > 300 and found == drawn(rule)
    for english, german in found:
        assert english[0].isupper() and german[0].isupper()
        assert english[-1] == german[-1] and english[-1] in ".?"


@pytest.mark.parametrize(
    "rule,conjunctions",
    [
        (reasoned, [("because", "weil"), ("although", "obwohl"), ("if", "wenn")]),
        (judged, [("because", "weil"), ("although", "obwohl")]),
        (meanwhile, [("while", "während"), ("before", "bevor"), ("when", "als")]),
        (reported, [("whether", "ob")]),
        (purposed, [("to", "um")]),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_conjunction_is_in_both_languages_or_in_neither(rule, conjunctions):
    found = drawn(rule)
    for english, german in conjunctions:
        german_words = re.compile(rf"(^|, ){german} ", re.IGNORECASE)
        english_words = re.compile(rf"(^| ){english} ", re.IGNORECASE)
        both = [(bool(english_words.search(x)), bool(german_words.search(y))) for x, y in found]
        assert (True, True) in both
        assert (False, True) not in both and (english == "to" or (True, False) not in both)


def test_an_infinitive_has_zu_before_its_verb_or_inside_it():
    for english, german in drawn(intended):
        assert " to " in english
        assert re.search(r", (.* )?(zu \w+|\w+zu\w+)\.$", german), german


def test_what_is_handed_on_is_a_pronoun_of_its_gender():
    for _, german in drawn(handed_on):
        bought = re.match(r".* (einen|eine|ein) .* gekauft und (ihn|sie|es) ", german)
        if bought:
            pronouns = {"einen": "ihn", "eine": "sie", "ein": "es"}
            assert pronouns[bought[1]] == bought[2], german
