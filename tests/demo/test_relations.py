"""Sentences that say which word depends on which one."""

import re

import pytest

from keras_transformer.demo import lexicon
from keras_transformer.demo.relations import RELATIONS, linked_pairs

pytestmark = pytest.mark.once("text alone")
PREFIXES = {verb.prefix for verb in lexicon.VERB_LIST} - {""}


def word(text, place):
    return re.match(r"[\w-]+", text[place:])[0]


@pytest.fixture(scope="module")
def linked():
    return {name: linked_pairs(name, 400, seed=1) for name in RELATIONS}


def test_a_prefix_is_linked_to_the_verb_that_it_belongs_to(linked):
    forms = {  # German finite forms and English forms of each verb with a prefix
        (verb.prefix, finite): {*verb.english}
        for verb in lexicon.VERB_LIST
        if verb.prefix
        for finite in verb.present
    }
    for english, german, (nothing, verb), (prefix, finite) in linked["separable prefix"]:
        assert nothing is None
        assert german[prefix:].rstrip(".") in PREFIXES
        assert finite < prefix
        found = (word(german, prefix), word(german, finite))
        assert found in forms, german
        # "looks at" and "looks after" have the same English verb, which is one of its forms
        assert any(word(english, verb) in own for own in forms.values()), english


def test_a_pronoun_is_linked_to_the_thing_that_it_stands_for(linked):
    names = {noun.english: noun for noun in lexicon.NOUNS.values()}
    pronouns = {"m": {"er", "ihn"}, "f": {"sie"}, "n": {"es"}}
    for english, german, (it, thing), (german_it, german_thing) in linked["antecedent"]:
        noun = names[word(english, thing)]
        assert word(english, it) == "it" and thing < it
        assert word(german, german_thing) == noun.german and german_thing < german_it
        assert word(german, german_it) in pronouns[noun.gender]


def test_no_mark_is_left_and_no_sentence_occurs_twice(linked):
    for own in linked.values():
        assert len({x.english for x in own}) == 400
        for english, german, *_ in own:
            assert re.fullmatch(r"[\w ,.'-]+", english + german)
            assert english[0].isupper() and german[0].isupper()
            assert english[-1] == german[-1] == "."


def test_a_seed_gives_the_same_sentences(linked):
    assert linked_pairs("antecedent", 20, seed=1) == linked["antecedent"][:20]
    assert linked_pairs("antecedent", 20, seed=2) != linked["antecedent"][:20]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (("verb", 1), "relation must be one of"),
        (("antecedent", 0), "count must be"),
        (("separable prefix", 1.5), "count must be"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        linked_pairs(*arguments)
