"""Patterns of simple sentences: agreement of both languages, and sentences by hand."""

import re

import pytest

from keras_transformer.demo.events import Events
from keras_transformer.demo.inflection import number
from keras_transformer.demo.phrases import named
from keras_transformer.demo.simple import (
    RULES,
    happened,
    having,
    located,
    person_described,
    priced,
    question_or_statement,
    statement,
    thing_described,
    told,
)
from keras_transformer.demo.syntax import Clause, Phrase, noun_phrase
from tests.demo.words import VERBS, her, noun

ANNA = named("Anna")
YESTERDAY = Phrase("yesterday", "gestern", "time")


def drawn(rule, count=500):
    """Return sentences of a pattern."""
    draw = Events(0)
    return [rule(draw) for _ in range(count)]


def calling(**options):
    return Clause(ANNA, VERBS["anrufen"], [her("brother"), YESTERDAY], "past", **options)


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES], ids=lambda rule: rule.__name__)
def test_a_sentence_has_a_capital_and_the_same_mark_in_both_languages(rule):
    found = drawn(rule)
    assert len(set(found)) > 100 and found == drawn(rule)
    for english, german in found:
        assert english[0].isupper() and german[0].isupper()
        assert re.findall("[.?]", english) == re.findall("[.?]", german)
        assert english[-1] in ".?"


def test_a_time_in_front_leaves_the_verb_second():
    draw = Events(0)
    assert {statement(draw, calling()) for _ in range(50)} == {
        ("Anna called her brother yesterday.", "Anna hat gestern ihren Bruder angerufen."),
        ("Yesterday Anna called her brother.", "Gestern hat Anna ihren Bruder angerufen."),
    }


def test_a_profession_has_a_form_for_women():
    found = dict(drawn(person_described, 5000))
    assert found["She is a doctor."] == "Sie ist Ärztin."
    assert found["He is an engineer."] == "Er ist Ingenieur."


def test_a_negated_clause_is_no_question():
    asked = "Did Anna call her brother yesterday?", "Hat Anna gestern ihren Bruder angerufen?"
    assert question_or_statement(Events(0), calling(), 1.0) == asked
    told = "Anna called her brother yesterday.", "Anna hat gestern ihren Bruder angerufen."
    assert question_or_statement(Events(0), calling(), 0.0) == told
    assert question_or_statement(Events(0), calling(negated=True), 1.0)[0].endswith(".")


def test_a_price():
    hat = noun_phrase("the", None, noun("hat"))
    for seed in range(50):
        english, german = priced(Events(seed), hat, ("only", "nur")).main()
        (amount,) = re.fullmatch("the hat costs only (.*) euros", english).groups()
        (betrag,) = re.fullmatch("der Hut kostet nur (.*) Euro", german).groups()
        assert (amount, betrag) in [number(value) for value in range(100)]


@pytest.mark.parametrize(
    "rule,english,german",
    [
        (happened, r" not |cannot", r" nicht| kein"),
        (having, r" not ", r" nicht| kein"),
        (person_described, r" years old", r" Jahre alt"),
        (thing_described, r" than ", r" als "),
        (thing_described, r" euros", r" Euro\b"),
        (located, r"^Where ", r"^Wo "),
        (told, r"\?$", r"\?$"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_phrase_is_in_both_languages_or_in_neither(rule, english, german):
    found = drawn(rule)
    assert any(re.search(english, one) for one, _ in found)
    for one, other in found:
        assert bool(re.search(english, one)) == bool(re.search(german, other)), (one, other)


def test_the_case_tells_where_from_where_to():
    for english, german in drawn(located):
        case = re.search(r" (?:auf|unter|neben|hinter|vor|in|an) (den|die|das|dem|der) ", german)
        if case:
            put = " put " in english or " hung " in english
            assert (case[1] in ("den", "die", "das")) == put, german


def test_the_simple_present_is_no_past():
    for english, _ in drawn(told):
        assert not re.match(r"(I|You|We|They|My parents) (put|read)\b", english)
