"""Granite of `transformers`: the same logits and tokens, the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.parity import DECODER_IDS, DecoderOnlyParity, assert_refused, fill

SIZES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32,
)  # fmt: skip
FACTORS = dict(
    embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3,
    logits_scaling=0.5,
)  # fmt: skip
CONFIGURATIONS = {
    "plain": dict(),
    "factors": FACTORS | dict(num_key_value_heads=2, tie_word_embeddings=True),
    "bias": FACTORS | dict(attention_bias=True, mlp_bias=True),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "factors"))
def pair(request, tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.GraniteConfig(**SIZES | DECODER_IDS | CONFIGURATIONS[request.param])
    theirs = transformers.GraniteForCausalLM(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return "granite", theirs, folder, read_model(folder, dtype="float32")


class TestGranite(DecoderOnlyParity):
    """Factors of embeddings, residuals, products of attention, and logits."""


def test_a_factor_of_zero_is_refused(tmp_path):
    message = "residual_multiplier must be a number above 0, got 0"
    config = dict(SIZES, model_type="granite", residual_multiplier=0)
    assert_refused(tmp_path, message, **config)
