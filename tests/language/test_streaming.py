"""Pieces of text from tokens, whatever stops them."""

import pytest

from keras_transformer.language.streaming import streamed_text
from keras_transformer.text.text_tokenizer import TextTokenizer

TOKENIZER = TextTokenizer.train(["to be or not to be"], "bytes", 270)


@pytest.mark.parametrize("text", ["to be", "to be or 犬 not", "größer", ""])
@pytest.mark.parametrize("stop", [(), ("be or",), ("x",), (" ", "be")])
def test_pieces(text, stop):
    (ids,) = TOKENIZER.encode([text])
    pieces = list(streamed_text(iter(ids), TOKENIZER, stop=stop))
    ends = [text.find(mark) for mark in stop if mark in text]
    assert "".join(pieces) == text[: min(ends, default=len(text))]
    assert not any("\ufffd" in piece for piece in pieces)


def test_it_stops_asking_for_tokens():
    def tokens():
        yield from TOKENIZER.encode(["to be"])[0]
        raise AssertionError("the text has ended")

    assert "".join(streamed_text(tokens(), TOKENIZER, stop=["be"])) == "to "
