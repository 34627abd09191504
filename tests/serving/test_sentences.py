"""Long texts as sentences, and together again."""

import time

from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.serving.sentences import Sentences


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


def test_a_long_line_takes_no_quadratic_time():
    begun = time.process_time()
    sentences = Sentences.of("word " * 40_000, "en", lambda x: len(x) < 100)
    assert len(sentences.texts) > 2000 and time.process_time() - begun < 10
