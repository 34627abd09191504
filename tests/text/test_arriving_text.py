"""Whole words of pieces, and ends of sentences without a look at later words."""

import pytest

from keras_transformer.text.arriving_text import ends_sentence, sentence_parts, whole_words

pytestmark = pytest.mark.once("texts: no tensor")


def test_words_that_end_a_sentence():
    ends = ["dog.", "dog?!", 'dog."', "犬。", "wait…", "(dog.)", "etc.", "X-Rays."]
    others = ["dog", "dog,", "Mr.", "Dr.", "(Dr.", "J.", "z.B.", "U.S.", "3.", "3.5", '"Mr."']
    assert all(map(ends_sentence, ends))
    assert not any(map(ends_sentence, others[:-1])) and ends_sentence(others[-1])


def test_parts():
    text = "Mr. Smith sleeps. A dog\n\nsees 犬。 me"
    assert list(sentence_parts(text)) == [
        (["Mr.", "Smith", "sleeps."], True),
        (["A", "dog"], True),
        ([], True),
        (["sees", "犬。"], True),
        (["me"], False),
    ]
    assert list(sentence_parts(" ")) == []


def test_whole_words():
    pieces = ["A do", "g", " sle", "eps.", "\n", "", "今日", "は。 a"]
    parts = list(whole_words(pieces))
    assert parts == ["A ", "dog ", "sleeps.\n", "今", "日は。 ", "a"]
    assert "".join(parts) == "".join(pieces)
    assert list(whole_words([])) == list(whole_words([""])) == []
