"""SentencePiece tokenizers: round trips, parity with tensorflow-text, bad input."""

import functools
import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
from tests.text.sentences import ENGLISH, GERMAN, UNICODE, trained


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@settings(deadline=None, max_examples=200)
@given(text=st.text())
def test_no_character_is_lost(kind, text):
    tokenizer = trained(kind)
    (ids,) = tokenizer.encode_target([text])
    normalize = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.target_model).normalize
    assert tokenizer.decode_target([ids]) == [normalize(text).replace("▁", " ").strip(" ")]
    assert tokenizer.unk_id not in ids


@pytest.mark.parametrize("text", [*ENGLISH[:5], *GERMAN[:5], *UNICODE[:6]])
def test_decoded_text_is_the_text_but_for_nfkc(text):
    tokenizer = trained()
    (decoded,) = tokenizer.decode_source(tokenizer.encode_source([text]))
    assert unicodedata.normalize("NFKC", decoded) == unicodedata.normalize("NFKC", text)


def test_spaces_are_the_only_other_thing_that_changes():
    tokenizer = trained()
    ids = tokenizer.encode_source(["  two \t spaces\n", "a\u00a0no-break one"])
    assert tokenizer.decode_source(ids) == ["two spaces", "a no-break one"]


def test_special_ids_and_sizes():
    tokenizer = trained()
    assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert tokenizer.source_vocab_size == tokenizer.target_vocab_size == 400
    assert tokenizer.shared and tokenizer.source_model == tokenizer.target_model


def test_separate_vocabularies():
    tokenizer = trained(shared=False)
    assert not tokenizer.shared and tokenizer.source_model != tokenizer.target_model
    german = tokenizer.encode_target(GERMAN[:3])
    assert tokenizer.decode_target(german) == GERMAN[:3]
    assert tokenizer.encode_source(GERMAN[:3]) != german


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_text_never_becomes_a_special_id(kind, sampling):
    tokenizer = trained(kind)
    texts = ["</s>", "a </s> b", "<s><pad><unk>", "<0x41>", "<unused0>"]
    rows = tokenizer.encode_source(texts, sampling=sampling, seed=0)
    assert all(row[-1] == 3 and min(row[:-1]) > 3 for row in rows)
    assert tokenizer.decode_source(rows) == texts


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_empty_text_is_the_end_alone(sampling):
    assert trained().encode_source(["", "  \t\n"], sampling=sampling, seed=0) == [[3], [3]]
    assert trained().encode_source([], sampling=sampling, seed=0) == []
    assert trained().decode_target([[3], [], [0, 2]]) == ["", "", ""]
    assert trained().decode_target([]) == []


def test_decoding_stops_at_the_end_and_skips_padding():
    tokenizer = trained()
    (ids,) = tokenizer.encode_target(["Der Hund"])
    rows = np.array([[2, *ids, *ids], [0, *ids, 0, 0, *[0] * (len(ids) - 2)]])
    assert tokenizer.decode_target(rows) == ["Der Hund", "Der Hund"]


def test_without_byte_fallback_unknown_characters_are_unknown():
    assert (
        trained(byte_fallback=False).unk_id in trained(byte_fallback=False).encode_source(["日"])[0]
    )


def test_skipped_ids_are_those_that_decoding_leaves_out():
    tokenizer = trained(byte_fallback=False)
    texts = tokenizer.decode_target([[i] for i in range(4)])
    assert {i for i, text in enumerate(texts) if not text} == tokenizer.skipped_ids()


def test_lowercase_is_the_models_own_and_keeps_sharp_s():
    tokenizer = trained(lowercase=True)
    ids = tokenizer.encode_source(["DIE Straße ÄÖÜ"])
    assert ids == tokenizer.encode_source(["die straße äöü"])
    assert tokenizer.decode_source(ids) == ["die straße äöü"]


@pytest.mark.parametrize(
    "options", [{}, {"kind": "unigram"}, {"lowercase": True}, {"byte_fallback": False}]
)
def test_tensorflow_text_gives_the_same_ids(options):
    tf_text = pytest.importorskip("tensorflow_text")
    import tensorflow as tf

    small = SentencePieceTokenizer.train(["hello"], ["hallo"], **options)  # has unused pieces
    for tokenizer in (trained(**options), small):
        twin = tf_text.SentencepieceTokenizer(
            model=tokenizer.source_model, out_type=tf.int32, add_eos=True
        )
        texts = ENGLISH + GERMAN + UNICODE
        ids = tokenizer.encode_source(texts)
        assert twin.tokenize(texts).to_list() == ids
        ours = tokenizer.decode_source(ids)
        theirs = [text.decode() for text in twin.detokenize(tf.ragged.constant(ids)).numpy()]
        assert ours == theirs


def test_pickled_tokenizer_gives_the_same_ids():
    # As multi-process data loading does it, in memory; no file of ours is a pickle.
    tokenizer = pickle.loads(pickle.dumps(trained()))
    assert tokenizer.encode_source(UNICODE) == trained().encode_source(UNICODE)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_save_and_load(tmp_path, kind, shared):
    tokenizer = trained(kind, shared)
    tokenizer.save(tmp_path / "new" / "tokenizer")
    loaded = load_tokenizer(tmp_path / "new" / "tokenizer")
    assert isinstance(loaded, SentencePieceTokenizer)
    assert (loaded.shared, loaded.kind) == (shared, kind)
    assert loaded.fingerprint() == tokenizer.fingerprint()
    for encode in ("encode_source", "encode_target"):
        same = functools.partial(getattr(loaded, encode), UNICODE + GERMAN)
        assert same() == getattr(tokenizer, encode)(UNICODE + GERMAN)
        expected = getattr(tokenizer, encode)(UNICODE + GERMAN, sampling=0.3, seed=7)
        assert same(sampling=0.3, seed=7) == expected


def test_failed_save_leaves_the_old_tokenizer(tmp_path, monkeypatch):
    trained().save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full_disk(path, content):
        with open(path, "wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space left"):
        trained("unigram").save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"texts": "one string"}, "texts must be a sequence of strings"),
        ({"texts": ["a", 3]}, r"must hold strings, got int at texts\[1\]"),
        ({"texts": ["a", "b\ud83d"]}, "must be valid Unicode, got a lone surrogate"),
        ({"texts": ["b\ud83d"], "sampling": 0.1}, "must be valid Unicode, got a lone surrogate"),
        ({"texts": ["a"], "sampling": 1.5}, r"sampling must be from 0 \(off\) to 1, got 1.5"),
        ({"texts": ["a"], "sampling": -0.1}, "sampling must be from 0"),
        ({"texts": ["a"], "sampling": 0.1, "seed": -1}, "seed must be None or not negative"),
    ],
)
def test_bad_encoding_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        trained().encode_source(**arguments)


def test_one_row_of_ids_is_refused():
    with pytest.raises(ValueError, match="ids must be a sequence of sequences"):
        trained().decode_target([5, 6, 3])


def test_bad_models():
    with pytest.raises(ValueError, match="source_model must be the bytes of a SentencePiece model"):
        SentencePieceTokenizer(b"no model")
    with pytest.raises(ValueError, match="target_model must be the bytes"):
        SentencePieceTokenizer(trained().source_model, b"")
