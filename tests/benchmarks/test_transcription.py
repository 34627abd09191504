"""Word errors of transcripts."""

import pytest

from benchmarks.transcription import spoken_words, word_errors

pytestmark = pytest.mark.once("texts")


def test_word_errors():
    assert spoken_words(" It's 42, Tom!") == ["it's", "four", "two", "tom"]
    for actual, expected, count in (
        ("Seven.", "seven", 0),
        ("7", "seven", 0),
        ("", "one two", 2),
        ("one two", "", 2),
        ("one three four", "one two three", 2),
        ("the dog", "a dog", 1),
    ):
        assert word_errors(actual, expected) == count
