"""What a tokenizer learns, and arguments that are refused."""

import sys

import pytest

from keras_transformer.text.text_tokenizer_training import library, trained

TEXTS = ["To be, or not to be:", "Whether 'tis nobler in the mind"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_case(lowercase):
    pieces = trained(TEXTS, "wordpiece", 100, lowercase).encode("To", add_special_tokens=False)
    assert "".join(pieces.tokens).replace("##", "") == ("to" if lowercase else "To")


def test_all_characters_and_all_bytes():
    characters = trained(TEXTS, "characters", 1, True).get_vocab()
    assert {x for x in characters if len(x) == 1} == {x for text in TEXTS for x in text}
    assert trained(TEXTS, "bytes", 270, True).get_vocab_size() == 270


def test_bad_arguments(monkeypatch):
    for size in (0, "x", 10**9):
        with pytest.raises(ValueError, match=f"vocab_size must be .*, got {size!r}"):
            trained(["a"], "wordpiece", size, True)
    with pytest.raises(ValueError, match="kind must be one of .*, got 'words'"):
        trained(TEXTS, "words", 100, True)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match='pip install .*"tokenizers>='):
        library()
