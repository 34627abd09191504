"""The text of a reply, piece by piece."""

import pytest

from keras_transformer.inference.pieces import Pieces
from keras_transformer.text.text_tokenizer import TextTokenizer

pytestmark = pytest.mark.once("knows no tensors")


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(["to be or not to be"] * 4, kind="bytes", vocab_size=257)


def pieces(tokenizer, text, stop=()):
    """The pieces of a text of one token a byte, the rest last, and whether it was stopped."""
    (ids,) = tokenizer.encode([text])
    assert len(ids) == len(text.encode())
    one = Pieces(tokenizer, stop)
    return [*(one.add(token) for token in ids), one.rest()], one.stopped


def test_characters_are_whole(tokenizer):
    found, stopped = pieces(tokenizer, "aé€😀b")
    assert found == ["a", "", "é", "", "", "€", "", "", "", "😀", "b", ""] and not stopped


def test_a_stop_text_is_no_part(tokenizer):
    found, stopped = pieces(tokenizer, "to be END or", stop=["END", "xx"])
    assert "".join(found) == "to be " and stopped
    assert found[6:9] == ["", "", ""]  # it may begin


def test_what_only_begins_like_a_stop_text_comes_later(tokenizer):
    found, stopped = pieces(tokenizer, "to ENough EN", stop=["END"])
    assert found[3:6] == ["", "", "ENo"]
    assert found[-1] == "EN" and "".join(found) == "to ENough EN" and not stopped
