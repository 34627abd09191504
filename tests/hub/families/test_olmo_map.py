"""OLMo 2 of `transformers`: the same logits and tokens, the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.parity import DECODER_IDS, DecoderOnlyParity, fill

SIZES = dict(
    hidden_size=24, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32,
)  # fmt: skip
CONFIGURATIONS = {
    "plain": dict(tie_word_embeddings=True),
    "grouped": dict(
        num_key_value_heads=2,
        attention_bias=True,
        rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=4.0),
    ),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "grouped"))
def pair(request, tmp_path_factory):
    torch.manual_seed(0)
    config = transformers.Olmo2Config(**SIZES | DECODER_IDS | CONFIGURATIONS[request.param])
    theirs = transformers.Olmo2ForCausalLM(config).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return "olmo2", theirs, folder, read_model(folder, dtype="float32")


class TestOLMo(DecoderOnlyParity):
    """Norms of the outputs of sub-layers, and over all heads of queries and keys."""
