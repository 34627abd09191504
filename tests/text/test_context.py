"""Sentences with those before them: windows by hand, and what is refused."""

import pytest

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.context import SEPARATOR, in_context, reads_context, sentences

pytestmark = pytest.mark.once("text: no tensor is read")


def test_windows_end_with_their_document():
    texts = ["a", " b ", "c", "d", "", " ", "e", "f"]
    assert list(in_context(texts, 1)) == [
        *("a", "a <sep> b", "b <sep> c", "c <sep> d"), "", "", *("e", "e <sep> f")
    ]  # fmt: skip
    assert list(in_context(texts, 2))[2:4] == ["a <sep> b <sep> c", "b <sep> c <sep> d"]
    assert list(in_context([], 3)) == []


def test_windows_are_made_as_they_are_asked_for():
    endless = in_context((str(i) for i in iter(int, 1)), 1)
    assert next(endless) == "0" and next(endless) == "0 <sep> 0"


def test_the_sentences_of_a_window():
    assert sentences("a <sep> b") == ["a", "b"] and sentences("") == [""]
    assert sentences("a<sep>") == ["a", ""]


def test_a_vocabulary_with_the_separator():
    def train(*symbols):
        options = dict(vocab_size=32, byte_fallback=False, symbols=symbols)
        return SentencePieceTokenizer.train(["one two"], ["one two"], **options)

    tokenizer = train(SEPARATOR)
    assert reads_context(tokenizer) and not reads_context(train())
    ids = tokenizer.encode_target(["one <sep> two"])
    assert tokenizer.decode_target(ids) == ["one <sep> two"]


def test_bad_input():
    with pytest.raises(ValueError, match="context_sentences must be .*at least 1, got 0"):
        in_context(["a"], 0)
    with pytest.raises(ValueError, match="texts must be text without <sep>, got 'b <sep>'"):
        list(in_context(["a", "b <sep>"], 1))
    with pytest.raises(ValueError, match="texts must hold strings, got int"):
        list(in_context([3], 1))
