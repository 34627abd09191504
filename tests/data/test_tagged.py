"""Reading CoNLL files."""

import pytest

from keras_transformer.data.tagged import read_tagged


def test_sentences(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("\nEmpire\tB-building\nState\tI-building\n\t\n\nHello\tO\n")
    assert read_tagged(path) == [
        (["Empire", "State"], ["B-building", "I-building"]),
        (["Hello"], ["O"]),
    ]


def test_bad_input(tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("Empire\tB-building\nState I-building\n")
    with pytest.raises(ValueError, match=r"line 2 must be a word, a tab and a tag, got 'State"):
        read_tagged(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match="must have a sentence, got none"):
        read_tagged(path)
