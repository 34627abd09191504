"""Documents of the grammar: pronouns that only the sentence before explains."""

import re
from collections import defaultdict

import pytest

from keras_transformer.demo.discourse import documents

pytestmark = pytest.mark.once("texts: no tensor is read")
PRONOUNS = r"(?i)\b(er|sie|es|ihn)\b"


def test_documents_each_once():
    found = documents(500)
    assert len({tuple(x) for x in found}) == 500 and {len(x) for x in found} == {2, 3}
    assert documents(20) == found[:20] and documents(20, seed=1) != found[:20]
    for text in (text for document in found for pair in document for text in pair):
        assert re.fullmatch(r"[A-ZÄÖÜ].*[.]", text) and "  " not in text


def test_it_has_the_gender_of_the_noun():
    article = {"der": "er", "die": "sie", "das": "es"}
    checked = 0
    for first, *others in documents(500):
        if found := re.match("(Der|Die|Das) .* ist ", first[1]):
            for english, german in others:
                if english.startswith("It "):
                    assert german.split()[0].lower() == article[found[1].lower()], (first, german)
                    checked += 1
    assert checked > 50


def test_each_later_sentence_has_one_pronoun_that_it_does_not_explain():
    ways = defaultdict(set)
    for _, *others in documents(20_000):
        for english, german in others:
            assert len(re.findall(r"(?i)\bit\b", english)) == 1
            assert len(re.findall(PRONOUNS, german)) == 1
            ways[english].add(german)
    assert max(map(len, ways.values())) == 3  # er, sie, es


def test_bad_input():
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        documents(0)
