"""Training pairs with terms: what they carry is in the target, and a translator learns to copy."""

import random

import pytest

from keras_transformer.text.glossary import TERM_TAGS, Glossary
from keras_transformer.training.terms import with_terms

BEGIN, MIDDLE, END = TERM_TAGS


def corpus(count=400):
    """Sentences of a hundred frequent words and rarer ones, each translated into upper case."""
    generator = random.Random(0)
    frequent = [f"f{a}{b}" for a in "abcdefghij" for b in "abcdefghijkl"]
    rare = [f"r{a}{b}" for a in "abcdefghij" for b in "abcde"]
    sentences = []
    for _ in range(count):
        words = generator.choices(frequent, k=6) + generator.choices(rare, k=2)
        generator.shuffle(words)
        sentences.append(words)
    return [(" ".join(x), " ".join(x).upper()) for x in sentences]


def without(source):
    """The source without its terms' translations, and these as pairs."""
    terms, words, rest = [], [], source.split()
    while rest:
        word = rest.pop(0)
        if word == BEGIN:
            term, middle, form, end, *rest = rest
            assert (middle, end) == (MIDDLE, END)
            terms.append((term, form))
            word = term
        words.append(word)
    return " ".join(words), terms


def test_terms_are_words_of_the_target():
    pairs = corpus()
    found = with_terms(pairs, 1.0)
    numbers = []
    for (source, target), (plain, same) in zip(found, pairs, strict=True):
        text, terms = without(source)
        assert text == plain and target == same
        assert all(form in target.split() for _, form in terms)
        numbers.append(len(terms))
    assert max(numbers) == 3 and numbers.count(0) < 60
    every = [term for source, _ in found for term in without(source)[1]]
    assert sum(form == term.upper() for term, form in every) > 0.9 * len(every)


def test_a_share_of_the_pairs_carry_terms():
    pairs = corpus()
    found = with_terms(pairs, 0.25, seed=1)
    changed = sum(a != b for a, b in zip(found, pairs, strict=True))
    assert 60 < changed < 140
    assert with_terms(pairs, 0.25, seed=1) == found != with_terms(pairs, 0.25, seed=2)
    assert with_terms(pairs, 0.0) == pairs and with_terms([], 0.5) == []


def test_a_glossary_writes_its_terms_in_the_same_way():
    glossary = Glossary({"old dog": ["Köter"], "lamp": ["Leuchte", "Leuchten"]})
    found = glossary.inlined("The Old  dog, a lamp; lamps.")
    assert found == (
        "The <term> Old  dog <is> Köter </term>, a <term> lamp <is> Leuchte </term>; lamps."
    )
    with pytest.raises(ValueError, match="source must be text without <is>, got "):
        glossary.inlined("a <is> b")


@pytest.mark.parametrize(
    "pairs,share,message",
    [
        ([("a", "b")], 1.1, r"share must be in \[0, 1\], got 1.1"),
        ([("a", "b")], -0.1, "share must be in"),
        ([("a <term> b", "b")], 0.5, "pairs must be text without <term>"),
        ([("a", "b </term>")], 0.0, "pairs must be text without </term>"),
    ],
)
def test_bad_input(pairs, share, message):
    with pytest.raises(ValueError, match=message):
        with_terms(pairs, share)
