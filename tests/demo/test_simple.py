"""Patterns of simple sentences: agreement of both languages, and sentences by hand."""

import re
from random import Random

import pytest

from keras_transformer.demo.inflection import THE, number
from keras_transformer.demo.phrases import named
from keras_transformer.demo.simple import (
    RULES,
    denied,
    employed,
    existing,
    having,
    located,
    moving,
    person_described,
    playing,
    priced,
    question_or_statement,
    statement,
    thing_described,
    timetable,
)
from keras_transformer.demo.syntax import Clause, Part, noun_phrase
from tests.demo.words import VERBS, her, noun

ANNA = named("Anna")
YESTERDAY = Part("yesterday", "gestern", "time")


def drawn(rule):
    """Return 500 sentences of a pattern."""
    rng = Random(0)
    return [rule(rng) for _ in range(500)]


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
    rng = Random(0)
    assert {statement(rng, calling()) for _ in range(50)} == {
        ("Anna called her brother yesterday.", "Anna hat gestern ihren Bruder angerufen."),
        ("Yesterday Anna called her brother.", "Gestern hat Anna ihren Bruder angerufen."),
    }


def test_a_profession_has_a_form_for_women():
    found = dict(drawn(employed))
    assert found["She is a doctor."] == "Sie ist Ärztin."
    assert found["He is an engineer."] == "Er ist Ingenieur."
    women = [german for english, german in found.items() if re.match("(My|Your) sister", english)]
    assert women and all(german.endswith("in.") for german in women)


def test_a_negated_clause_is_no_question():
    asked = "Did Anna call her brother yesterday?", "Hat Anna gestern ihren Bruder angerufen?"
    assert question_or_statement(Random(0), calling(), 1.0) == asked
    told = "Anna called her brother yesterday.", "Anna hat gestern ihren Bruder angerufen."
    assert question_or_statement(Random(0), calling(), 0.0) == told
    assert question_or_statement(Random(0), calling(negated=True), 1.0)[0].endswith(".")


def test_a_price():
    hat = noun_phrase(THE, None, noun("hat"))
    for seed in range(50):
        english, german = priced(Random(seed), hat, ("only", "nur")).main()
        (amount,) = re.fullmatch("the hat costs only (.*) euros", english).groups()
        (betrag,) = re.fullmatch("der Hut kostet nur (.*) Euro", german).groups()
        assert (amount, betrag) in [number(value) for value in range(100)]


@pytest.mark.parametrize(
    "rule,english,german",
    [
        (denied, r" not |cannot", r" nicht| kein"),
        (existing, r" there (is|are) ", r" gibt es "),
        (moving, r"onto|sleeping", r" gesprungen\.| schläft gerade "),
        (timetable, r"(leaves|left|leave)\b", r"(fährt|abgefahren|fahren)\b"),
        (playing, r"[Cc]an ", r"([Kk]ann|[Kk]annst|[Kk]önnen)\b"),
        (having, r" not ", r" kein"),
        (person_described, r" years old", r" Jahre alt"),
        (thing_described, r" than ", r" als "),
        (located, r"^Where ", r"^Wo "),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_phrase_is_in_both_languages_or_in_neither(rule, english, german):
    found = drawn(rule)
    assert any(re.search(english, one) for one, _ in found)
    for one, other in found:
        assert bool(re.search(english, one)) == bool(re.search(german, other)), (one, other)


def test_the_case_tells_where_from_where_to():
    for english, german in drawn(moving):
        case = re.search(r" (?:auf|unter|neben|hinter|vor|in) (den|die|das|dem|der) ", german)
        if case:
            assert (case[1] in ("den", "die", "das")) == ("onto" in english), german
