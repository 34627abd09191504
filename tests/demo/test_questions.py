"""Questions: question words by hand, and which part of the clause they ask for."""

import re

import pytest

from keras_transformer.demo.events import Events
from keras_transformer.demo.phrases import named
from keras_transformer.demo.questions import (
    asked,
    asked_what,
    asked_who,
    object_question,
    questioned,
)
from tests.demo.words import VERBS

ANNA = named("Anna")


def drawn(draw, *arguments):
    """Return 500 results of a function that draws."""
    generator = Events(0)
    return [draw(generator, *arguments) for _ in range(500)]


@pytest.mark.parametrize(
    "infinitive,expected",
    [
        ("sprechen", {("what", "worüber")}),
        ("warten", {("whom", "auf wen"), ("what", "worauf")}),
        ("danken", {("whom", "wem")}),
        ("treffen", {("whom", "wen")}),
    ],
)
def test_question_words_have_the_preposition_and_the_case_of_the_verb(infinitive, expected):
    found = {(x.english, x.german) for x in drawn(object_question, VERBS[infinitive])}
    assert found == expected


def test_questions_for_a_thing():
    found = {(x.english, x.german) for x in drawn(object_question, VERBS["kaufen"])}
    assert ("what", "was") in found and ("which hat", "welchen Hut") in found
    for english, german in found - {("what", "was")}:
        assert english.startswith("which ") and german.startswith("welche")


def test_the_part_that_is_asked_for_is_missing():
    words = set()
    for clause, front in drawn(questioned, ANNA):
        words.add(front.english.split()[0])
        gaps = [part for part in clause.parts if not part.german]
        assert len(gaps) == (front.english.split()[0] in ("whom", "what", "which"))
        if front.english == "when":
            assert "time" not in [part.slot for part in clause.parts]
        if front.english == "where":
            assert "place" not in [part.slot for part in clause.parts]
    assert words == {"when", "where", "why", "whom", "what", "which"}


def test_yes_no_questions_begin_with_the_verb():
    auxiliaries = "Did Does Do Is Are Am Was Were Has Have Had Can Could Will Would Should"
    for english, german in drawn(asked):
        assert english.endswith("?") and german.endswith("?")
        assert english.split()[0] in auxiliaries.split(), english
        assert not re.match("(Ich|Du|Er|Sie|Es|Wir|Der|Die|Das|Mein|Meine) ", german), german


def test_questions_for_the_subject_keep_the_order_of_a_statement():
    for english, german in drawn(asked_who):
        assert english.startswith("Who ") and german.startswith("Wer ")
        assert " did " not in english


def test_other_questions_begin_with_the_question_word():
    for english, german in drawn(asked_what):
        assert re.match("(When|Where|Why|How|Whom|What|Which) ", english), english
        assert re.match("(W|Auf w|An w|Für w|Mit w|Über w|Von w|Nach w|Um w)", german), german
