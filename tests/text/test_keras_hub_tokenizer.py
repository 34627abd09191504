"""keras-hub tokenizers in the place of ours: same ids, special ids, saved and loaded."""

import functools
import importlib.util
import sys

import numpy as np
import pytest

from keras_transformer.text import KerasHubTokenizer, SentencePieceTokenizer, load_tokenizer
from tests.backends import BACKEND

if BACKEND == "jax":
    pytest.skip("JAX's arrays are read as NumPy's, tensors are not", allow_module_level=True)
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("keras_hub") is None, reason="KerasHub is not installed"
)

TEXTS = ["a bab ab", "ab", "b </s> a", "", "  "]


@functools.cache
def ours():
    return SentencePieceTokenizer.train(["a bab ab", "ab ba", "</s>"], ["bab"], vocab_size=280)


def sentence_piece(**options):
    import keras_hub  # here, because it imports TensorFlow

    return keras_hub.tokenizers.SentencePieceTokenizer(proto=ours().source_model, **options)


def byte_pair(*special):
    import keras_hub

    tokens = ["a", "b", "Ġ", "Ġa", "Ġb", "ab", "<", ">", "/", "s", "p", "d", *special]
    return keras_hub.tokenizers.BytePairTokenizer(
        vocabulary={token: index for index, token in enumerate(tokens)},
        merges=["Ġ a", "Ġ b", "a b"],
    )


@pytest.mark.parametrize("options", [{}, {"add_bos": True, "add_eos": True}])
def test_sentence_piece_is_the_same_as_ours(options):
    tokenizer = KerasHubTokenizer(sentence_piece(**options))
    for name in ("pad_id", "unk_id", "bos_id", "eos_id", "source_vocab_size", "target_vocab_size"):
        assert getattr(tokenizer, name) == getattr(ours(), name)
    ids = tokenizer.encode_source(TEXTS)
    assert ids == ours().encode_source(TEXTS)
    assert tokenizer.encode_target([]) == []
    padded = [[2, *row, *[0] * 5] for row in ids]
    assert tokenizer.decode_target(padded) == ours().decode_target(padded)
    assert tokenizer.source_model == tokenizer.target_model == ours().source_model


def test_byte_pair_with_ids_beyond_the_vocabulary():
    inner = byte_pair()
    tokenizer = KerasHubTokenizer(inner, pad_id=12, bos_id=13, eos_id=20)
    assert tokenizer.unk_id is None and tokenizer.source_vocab_size == 24
    ids = tokenizer.encode_target(TEXTS[:2])
    assert ids == [[*inner.tokenize(text), 20] for text in TEXTS[:2]]
    assert tokenizer.encode_target([""]) == [[20]]
    rows = np.full((2, 12), 12)
    for row, text_ids in zip(rows, ids, strict=True):
        row[: len(text_ids) + 1] = [13, *text_ids]
    assert tokenizer.decode_target(rows) == TEXTS[:2]
    assert tokenizer.decode_target([[23, *ids[1]]]) == ["ab"]


def test_special_tokens_of_the_text_are_no_special_ids():
    tokenizer = KerasHubTokenizer(byte_pair("<pad>", "<s>", "</s>"))
    assert (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id) == (12, 13, 14)
    (ids,) = tokenizer.encode_source(["a</s>b<pad>"])
    assert not {12, 13, 14} & set(ids[:-1])


@pytest.mark.parametrize("shared", [True, False])
def test_save_and_load(tmp_path, shared):
    special = ("<pad>", "<s>", "</s>")
    target = None if shared else byte_pair(*special, "extra")
    tokenizer = KerasHubTokenizer(byte_pair(*special), target)
    tokenizer.save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert isinstance(loaded, KerasHubTokenizer) and loaded.shared == shared
    assert loaded.fingerprint() == tokenizer.fingerprint()
    assert loaded.encode_source(TEXTS[:2]) == tokenizer.encode_source(TEXTS[:2])
    assert loaded.decode_target([[0, 1]]) == ["ab"]
    assert loaded.eos_id == 14 and loaded.target_vocab_size == tokenizer.target_vocab_size


def test_saved_sentence_piece_tokenizer(tmp_path):
    KerasHubTokenizer(sentence_piece()).save(tmp_path)
    assert load_tokenizer(tmp_path).encode_source(TEXTS) == ours().encode_source(TEXTS)


def test_changed_or_missing_asset(tmp_path):
    KerasHubTokenizer(sentence_piece()).save(tmp_path)
    asset = tmp_path / "shared" / "vocabulary.spm"
    other = SentencePieceTokenizer.train(["xyz"], ["zyx"], vocab_size=280)
    asset.write_bytes(other.source_model)
    with pytest.raises(ValueError, match="not those that were saved"):
        load_tokenizer(tmp_path)
    asset.unlink()
    asset.parent.rmdir()
    with pytest.raises(FileNotFoundError, match="shared is missing"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("special", "given", "message"),
    [
        ([], {}, "pad_id must be given: the vocabulary has none of"),
        (["<pad>", "<s>"], {}, "eos_id must be given"),
        (["<pad>", "<s>", "</s>"], {"eos_id": 12}, "pad_id, bos_id and eos_id must differ"),
        (["<pad>", "<s>", "</s>"], {"pad_id": -1}, "pad_id must not be negative, got -1"),
    ],
)
def test_bad_special_ids(special, given, message):
    with pytest.raises(ValueError, match=message):
        KerasHubTokenizer(byte_pair(*special), **given)


def test_vocabularies_with_different_special_ids():
    with pytest.raises(ValueError, match="pad_id differs in the two vocabularies"):
        KerasHubTokenizer(
            byte_pair("<pad>", "<s>", "</s>"), byte_pair("extra", "<pad>", "<s>", "</s>")
        )


def test_no_sampling_and_no_sentence_piece_model():
    tokenizer = KerasHubTokenizer(byte_pair("<pad>", "<s>", "</s>"))
    with pytest.raises(ValueError, match=r"sampling must be 0 for a keras-hub tokenizer, got 0\.1"):
        tokenizer.encode_source(TEXTS, sampling=0.1)
    with pytest.raises(ValueError, match="a BytePairTokenizer has no SentencePiece model"):
        tokenizer.source_model  # noqa: B018


def test_missing_keras_hub_names_the_extra(tmp_path, monkeypatch):
    KerasHubTokenizer(sentence_piece()).save(tmp_path)
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(ImportError, match='pip install "keras-hub>='):
        load_tokenizer(tmp_path)
