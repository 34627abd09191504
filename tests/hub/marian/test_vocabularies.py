"""Vocabularies of Marian: of one size or two, in SentencePiece or YAML."""

import pytest

from keras_transformer.hub.marian.vocabularies import suppressed, tokenizer_of
from tests.hub.marian.models import DATA

pytestmark = pytest.mark.once("reads files")


def test_a_joint_vocabulary():
    tokenizer = tokenizer_of([DATA / "joint.spm"] * 2, [240, 240], DATA)
    assert tokenizer.shared and tokenizer.source_vocab_size == 241
    assert (tokenizer.eos_id, tokenizer.unk_id, tokenizer.pad_id) == (0, 1, 240)
    assert suppressed(tokenizer) == {1}


def test_two_vocabularies_of_different_sizes(tmp_path):
    small = tmp_path / "small.yml"
    small.write_text('"</s>": 0\n"<unk>": 1\n"<pad>": 2\n', "utf-8")
    tokenizer = tokenizer_of([DATA / "en.yml", small], [152, 3], DATA)
    pieces = tokenizer.pieces_of("target")
    assert not tokenizer.shared and len(pieces) == 153 == tokenizer.source_vocab_size
    assert pieces[-1] == "<pad>" and tokenizer.pad_id == 152


def test_broken_files_are_named(tmp_path):
    path = tmp_path / "broken.spm"
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"broken.spm is not a SentencePiece model"):
        tokenizer_of([path, path], [1, 1], DATA)
    path = tmp_path / "words.yml"
    path.write_text("a: 0\nb: 2\n")
    with pytest.raises(ValueError, match=r"the ids in .*words.yml must be each number from 0 to 1"):
        tokenizer_of([path, path], [2, 2], DATA)
    path.write_text("a: 0\nb: 1\n")
    with pytest.raises(ValueError, match=r"words.yml must have the pieces </s> and <unk>"):
        tokenizer_of([path, path], [2, 2], DATA)
    path.write_text("a: 0\n" + "#" * 5_000)
    with pytest.raises(ValueError, match=r"bytes of .*words.yml must be at most 4000 for 2 pieces"):
        tokenizer_of([path, path], [2, 2], DATA)
    path = tmp_path / "words.txt"
    path.write_text("a")
    with pytest.raises(ValueError, match=r"a vocabulary must be a path that ends with .spm"):
        tokenizer_of([path, path], [1, 1], DATA)
