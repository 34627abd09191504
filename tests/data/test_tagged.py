"""Reading CoNLL files."""

import pytest

from keras_transformer.data.tagged import labels_of_tokens, numbered, read_tagged


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


def test_labels():
    assert numbered(["b", "a", "b"], ("a", "b"), "x.tsv") == [1, 0, 1]
    with pytest.raises(ValueError, match=r"x.tsv: a label must be one of \('a', 'b'\), got 'c'"):
        numbered(["b", "c"], ("a", "b"), "x.tsv")
    encoded = [([2, 7, 8, 9, 3], [1, 3]), ([2, 3], [])]
    assert [x.tolist() for x in labels_of_tokens(encoded, [[5, 6], []])] == [
        [-1, 5, -1, 6, -1],
        [-1, -1],
    ]
