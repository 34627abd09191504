"""Tokenizers beside converted models: which files make which tokenizer, and what is missing."""

import shutil

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.hub.ctranslate2_reader import Converted
from keras_transformer.hub.ctranslate2_tokenizer import text_tokenizer_of, tokenizer_of
from keras_transformer.hub.ctranslate2_writer import write_model
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.marian_tokenizer import MarianTokenizer

pytestmark = pytest.mark.once("text only")
ENGLISH = ["The old man sees the dog.", "A dog sleeps here."]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier."]


@pytest.fixture
def write(tmp_path, randomize):
    """`write(tokenizer)`: an open converted model with the two SentencePiece models beside it."""

    def make(tokenizer):
        sizes = dict(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
        config = TransformerConfig(
            tokenizer.source_vocab_size, tokenizer.target_vocab_size, **sizes, max_length=20,
            pad_id=tokenizer.pad_id, bos_id=tokenizer.bos_id, eos_id=tokenizer.eos_id,
            share_embeddings=tokenizer.shared,
        )  # fmt: skip
        write_model(tmp_path, randomize(Transformer(config)), tokenizer)
        (tmp_path / "source.spm").write_bytes(tokenizer.source_model)
        (tmp_path / "target.spm").write_bytes(tokenizer.target_model)
        return Converted.read(tmp_path)

    return make


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        dict(kind="unigram", byte_fallback=False, vocab_size=48),
        dict(shared=False),
        dict(target_languages=["de", "fr"]),
    ],
    ids=["bpe", "unigram", "separate", "languages"],
)
def test_our_own(options, write):
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, **dict(vocab_size=320) | options)
    actual = tokenizer_of(write(tokenizer))
    assert type(actual) is SentencePieceTokenizer
    assert actual.fingerprint() == tokenizer.fingerprint()
    assert actual.target_languages == tokenizer.target_languages


def test_marian(marian_files, write, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    tokenizer = MarianTokenizer.read(marian_files(folder, ENGLISH * 20, GERMAN * 20, vocab_size=60))
    actual = tokenizer_of(write(tokenizer))
    assert actual.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
    assert actual.encode_target(GERMAN) == tokenizer.encode_target(GERMAN)
    assert actual.target_languages == ("deu", "fra")


def test_missing_files(write, tmp_path):
    converted = write(SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320))
    (tmp_path / "target.spm").unlink()
    problem = r"has no tokenizer: copy source.spm and target.spm \(Marian\), or one of tokenizer"
    with pytest.raises(FileNotFoundError, match=problem):
        tokenizer_of(converted)
    shutil.copyfile(tmp_path / "source.spm", tmp_path / "target.spm")
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer.json: copy .* Whisper into it"):
        text_tokenizer_of(converted)


def test_files_of_another_model(write, tmp_path):
    converted = write(SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=320))
    other = SentencePieceTokenizer.train(GERMAN, ENGLISH, vocab_size=328)
    (tmp_path / "source.spm").write_bytes(other.source_model)
    (tmp_path / "target.spm").write_bytes(other.source_model)
    # Marian's models have other pieces than the vocabulary, which is then the one that counts.
    assert tokenizer_of(converted).pieces_of("source") == converted.vocabularies["source"]
    assert np.size(tokenizer_of(converted).encode_source(GERMAN[:1]))
