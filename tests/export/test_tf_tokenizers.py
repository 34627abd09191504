"""Tokenizers as TensorFlow functions: the same ids and texts as in Python."""

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("functions of TensorFlow", allow_module_level=True)
pytest.importorskip("tensorflow_text")

import tensorflow as tf

from keras_transformer.export.tf_tokenizers import PiecesSide, SentencePieceSide, side_of
from keras_transformer.text import MarianTokenizer, SentencePieceTokenizer, read_tokenizer

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20
TEXTS = [*ENGLISH[:3], *GERMAN[:3], "", "  two  spaces ", "naïve 犬 ½", "a </s> b"]


def content(tokenizer, language, texts):
    """Return the ids of each text without the tokens around it."""
    rows = getattr(tokenizer, f"encode_{language}")(texts)
    before, after = getattr(tokenizer, f"{language}_frame")
    return [ids[len(before) : len(ids) - len(after)] for ids in rows]


def check(tokenizer, language, texts):
    side = side_of(tokenizer, language)
    expected = content(tokenizer, language, texts)
    assert side.tokenize(tf.constant(texts)).to_list() == expected
    found = side.detokenize(tf.ragged.constant(expected, dtype="int32"))
    decode = getattr(tokenizer, f"decode_{language}")
    assert [text.decode() for text in found.numpy()] == decode(expected)
    return side


@pytest.mark.parametrize("language", ["source", "target"])
def test_our_own_vocabularies(language):
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320, shared=False)
    side = check(tokenizer, language, TEXTS)
    assert isinstance(side, SentencePieceSide)
    assert side.size == getattr(tokenizer, f"{language}_vocab_size")


@pytest.mark.parametrize("language", ["source", "target"])
def test_a_vocabulary_beside_the_pieces(marian_files, tmp_path, language):
    tokenizer = MarianTokenizer.read(marian_files(tmp_path, ENGLISH, GERMAN))
    tags = [">>fra<<A dog.", "A >>deu<< dog"] if language == "source" else []
    side = check(tokenizer, language, [*TEXTS, *tags])
    assert isinstance(side, PiecesSide)
    assert side.size == len(tokenizer.pieces_of(language))


def test_symbols_and_ids_that_are_no_text(tokenizer_files, tmp_path):
    config = tokenizer_files("t5", tmp_path, ENGLISH)
    tokenizer = read_tokenizer(tmp_path, config)
    side = check(tokenizer, "source", ["A <extra_id_0> dog<extra_id_1>", *TEXTS])
    (ids,) = content(tokenizer, "source", ["A dog."])
    skipped = sorted(tokenizer.skipped_ids())
    assert skipped
    (text,) = side.detokenize(tf.ragged.constant([[*skipped, *ids, *skipped]])).numpy()
    assert text.decode() == "A dog."


def test_a_tokenizer_without_a_sentencepiece_model(tokenizer_files, tmp_path):
    transformers = pytest.importorskip("transformers")
    config = tokenizer_files("t5", tmp_path, ENGLISH)
    (tmp_path / "fast").mkdir()
    transformers.T5Tokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path / "fast")
    tokenizer = read_tokenizer(tmp_path / "fast", config)
    with pytest.raises(ValueError, match=r"no SentencePiece model, only a tokenizer\.json"):
        side_of(tokenizer, "source")
