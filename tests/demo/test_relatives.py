"""Relative clauses: pronouns that follow the gender and the case, commas, the gap in the clause."""

import re

import pytest

from keras_transformer.demo.events import Events
from keras_transformer.demo.phrases import GOODS, named
from keras_transformer.demo.relatives import (
    USES,
    person_related,
    relative_clause,
    thing_related,
    used,
    with_relative,
)
from keras_transformer.demo.syntax import noun_phrase
from tests.demo.words import noun

ANNA = named("Anna")
PREPOSITIONS = {"an", "auf", "für", "mit", "nach", "über", "um", "von", "vor", "zu"}


def drawn(draw, *arguments):
    """Return 500 results of a function that draws."""
    generator = Events(0)
    return [draw(generator, *arguments) for _ in range(500)]


@pytest.mark.parametrize(
    "person,plural,pronouns",
    [
        ("man", False, {"who": "der", "whom": "den dem", "whose": "dessen"}),
        ("woman", False, {"who": "die", "whom": "die der", "whose": "deren"}),
        ("man", True, {"who": "die", "whom": "die denen", "whose": "deren"}),
    ],
)
def test_the_pronoun_has_the_gender_of_the_head_and_its_own_case(person, plural, pronouns):
    head = noun_phrase("the", None, noun(person), plural=plural)
    found = {word: set() for word in pronouns}
    for english, german in drawn(relative_clause, head):
        (word,) = set(english.split()[:2]) & pronouns.keys()
        first, second = german.split()[:2]
        found[word].add(second if first in PREPOSITIONS else first)
    assert found == {word: set(forms.split()) for word, forms in pronouns.items()}


def test_german_encloses_the_clause_in_commas():
    head = noun_phrase("the", None, noun("man"))
    found = with_relative(head, ("who sleeps", "der schläft"))
    assert (found.english, found.german) == ("the man who sleeps", "der Mann, der schläft,")
    assert found.german_row == head.german_row


def test_a_thing_is_used_or_left_out():
    coat = noun_phrase("the", None, noun("coat"), "acc")
    for clause in drawn(used, noun("coat"), ANNA, coat):
        english, german = clause.main()
        assert clause.verb in USES["coat"]
        assert english.endswith(" the coat") and " den Mantel " in german
    for clause in drawn(used, noun("coat"), ANNA):
        assert "Mantel" not in clause.main()[1]


def test_each_thing_has_a_use():
    assert all(USES[thing.english] for thing in GOODS)


@pytest.mark.parametrize(
    "rule,word,pronouns",
    [
        (person_related, "who", {"Der": "der", "Die": "die", "Das": "das"}),
        (thing_related, "that", {"Der": "den", "Die": "die", "Das": "das"}),
    ],
    ids=["person", "thing"],
)
def test_the_article_tells_the_pronoun(rule, word, pronouns):
    count = 0
    for english, german in drawn(rule):
        if re.match(rf"The (\w+ )?\w+ {word} ", english):
            article, pronoun = re.match(r"(Der|Die|Das) [^,]*, (\w+) ", german).groups()
            assert pronouns[article] == pronoun, german
            count += 1
    assert count > 50


@pytest.mark.parametrize("rule", [person_related, thing_related])
def test_a_relative_clause_is_set_off_by_commas(rule):
    for english, german in drawn(rule):
        assert english[-1] == german[-1]
        assert german.count(",") >= 1
