"""Places of words in texts."""

import pytest

from keras_transformer.text.word_spans import (
    join_words,
    members_of,
    spaced_words,
    split_words,
    text_words,
    words,
)

pytestmark = pytest.mark.once("texts: no tensor")


def test_words():
    assert words("  A dog,\u3000犬 ") == [(2, 3), (4, 7), (7, 8), (9, 10)]
    assert words(" ") == []
    assert [text[slice(*x)] for text in ["don't 今日は"] for x in words(text)] == [
        "don't",
        "今",
        "日",
        "は",
    ]
    assert spaced_words(" Zwei  Hunde. ") == [(1, 5), (7, 13)]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("Zwei «Hunde», ja.", ["Zwei", "«Hunde»,", "ja."]),
        ("今日は。Tomです", ["今", "日", "は。", "Tom", "で", "す"]),
    ],
)
def test_words_with_punctuation(text, expected):
    assert split_words(text) == expected
    assert join_words(expected) == text
    assert [text[start:end] for start, end in text_words(text)] == expected
    for i in range(len(expected)):
        assert text.startswith(join_words(expected[:i]))


def test_tokens_of_words():
    tokens = [(0, 3), (3, 6), (6, 8)]
    assert members_of([(0, 5), (6, 8)], tokens).tolist() == [[1, 1, 0], [0, 0, 1]]
