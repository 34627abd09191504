"""The specification of a model for CTranslate2: which weights go where."""

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.hub.ctranslate2_writer import specification, write_model
from keras_transformer.models import T5GemmaConfig, Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.weights import weights_of

pytestmark = pytest.mark.once("arrays, whatever runs here")
TEXTS = ["one two three", "three two one", "two"]


@pytest.fixture(scope="module")
def tokenizer():
    return SentencePieceTokenizer.train(TEXTS, TEXTS, vocab_size=24, byte_fallback=False)


@pytest.fixture(scope="module")
def model(tokenizer, randomize):
    size = tokenizer.source_vocab_size
    sizes = dict(d_model=8, d_ff=12, num_heads=2, num_encoder_layers=1, num_decoder_layers=2)
    return randomize(Transformer(TransformerConfig(size, size, **sizes, max_length=20)))


def test_each_weight_has_its_place(model, tokenizer):
    weights, pieces = weights_of(model), tokenizer.pieces_of("target")
    spec = specification(model.config, weights, pieces, pieces, tokenizer.unk_id)
    table = weights["target_embedding/tokens/embeddings"]
    assert np.array_equal(spec.decoder.embeddings.weight, table)
    assert np.array_equal(spec.decoder.projection.weight, table)
    hidden = weights["decoder/block_1/feed_forward/hidden/kernel"]
    assert np.array_equal(spec.decoder.layer[1].ffn.linear_0.weight, hidden.T)
    assert spec.decoder.scale_embeddings == pytest.approx(8**0.5)
    never = np.flatnonzero(spec.decoder.projection.bias < -1e8)
    assert sorted(never) == sorted([tokenizer.pad_id, tokenizer.bos_id])
    assert spec.config.eos_token == pieces[tokenizer.eos_id]
    spec.validate()


def test_other_families_are_refused():
    with pytest.raises(ValueError, match="config must be one of .* for CTranslate2, got 'T5GemmaC"):
        specification(T5GemmaConfig(24), {}, [], [])


def test_a_written_model(model, tokenizer, tmp_path):
    write_model(tmp_path, model, tokenizer)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert "model.bin" in names and "config.json" in names
