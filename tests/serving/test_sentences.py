"""Long texts as sentences, and together again."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.serving import sentences as module
from keras_transformer.serving.sentences import MARKS, SLICE, Sentences

PUNCTUATION = [x for x in map(chr, range(sys.maxunicode)) if unicodedata.category(x)[0] == "P"]


def test_sentences_and_their_white_space():
    sentences = Sentences.of("  Mr. Smith came.  He left!\n\n\tOne more line \n", "en")
    assert sentences.texts == ["Mr. Smith came.", "He left!", "One more line"]
    assert sentences.joined(["A.", "B!", "C"]) == "  A.  B!\n\n\tC \n"


@given(st.text(), st.integers(1, 30))
@example("0\t0", 1)
@example("ab\x1f  c", 1)
def test_nothing_is_lost(text, limit):
    sentences = Sentences.of(text, "en", lambda sentence: len(sentence) <= limit)
    assert sentences.joined(sentences.texts) == text
    assert all(0 < len(x) <= limit and x == x.strip() for x in sentences.texts)


def test_long_sentences_are_split_at_commas_before_spaces():
    sentences = Sentences.of("one two, three four five", "en", lambda x: len(x) < 20)
    assert sentences.texts == ["one two,", "three four five"]
    assert Sentences.of("abcd", "en", lambda x: len(x) < 3).texts == ["ab", "cd"]


@pytest.fixture
def split(monkeypatch):
    """Splits a text, and returns the characters that the library was given of it, call by call."""
    given, segment = [], module.sentencex.segment

    def watched(language, line):
        given.append(len(line))
        assert len(line) <= SLICE
        if len(line) > MARKS:
            marks = sum(unicodedata.category(x)[0] == "P" or x > "\uffff" for x in line)
            assert marks <= MARKS
        return segment(language, line)

    class Library:
        segment = staticmethod(watched)

    def run(text, fits=lambda sentence: True):
        given.clear()
        sentences = Sentences.of(text, "en", fits)
        assert "".join(sentences.parts) == text
        return given[:]

    monkeypatch.setattr(module, "sentencex", Library)
    return run


@pytest.mark.once("no tensors")
@pytest.mark.parametrize("size, others", [(1000, ["", *"!?.。("]), (10_000, ["", "!"])])
def test_any_mark_takes_time_in_proportion(split, size, others):
    marks = ["e\u0301", "\u200d", *PUNCTUATION]
    for mark in marks if size == 1000 else marks[:2] + marks[2::8]:
        for other in others:
            text = ((mark + other) * size)[:size]
            assert sum(split(text)) <= 2 * size, (mark, other)


@pytest.mark.once("no tensors")
def test_words_in_a_long_line_are_whole_and_its_sentences_too(split):
    text = "It is said, as we know, that a dog runs. " * 300
    assert set(split(text)) != {len(text)}
    assert set(Sentences.of(text, "en").texts) == {text[:40]}
    words = Sentences.of("word " * 4000, "en").texts
    assert len(words) > 1 and {word for text in words for word in text.split()} == {"word"}


@pytest.mark.once("no tensors")
def test_pieces_are_asked_for_their_length_in_proportion(split):
    for unit in ("a,", "a ", "a", ", "):
        asked = []

        def fits(sentence, asked=asked):
            asked.append(len(sentence))
            return len(sentence) <= 40

        split((unit * 50_000)[:50_000], fits)
        assert sum(asked) <= 10 * 50_000, unit  # a slice is halved some seven times


def test_the_work_ends_if_the_watch_raises():
    seen = []

    def watch(sentences):
        seen.extend(sentences)
        if len(seen) > 100:
            raise MemoryError

    with pytest.raises(MemoryError):
        Sentences.of("One. " * 100_000, "en", watch=watch)
    assert len(seen) < 1000
