"""LLaMA and Mistral of `transformers`: the same logits, and the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.checkpoints.hugging_face import read_model
from tests.checkpoints.families.parity import DECODER_IDS, DecoderOnlyParity, assert_refused

SIZES = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=32,
)  # fmt: skip
LENGTHS = dict(original_max_position_embeddings=8)
CONFIGURATIONS = {
    "llama": ("llama", dict()),
    "llama-grouped-tied": (
        "llama",
        dict(num_key_value_heads=2, head_dim=6, tie_word_embeddings=True),
    ),
    "llama3": (
        "llama",
        dict(
            num_key_value_heads=1,
            rope_parameters=dict(
                rope_type="llama3", rope_theta=5000.0, factor=8.0, low_freq_factor=1.0,
                high_freq_factor=4.0, **LENGTHS,
            ),
        ),
    ),
    "llama-yarn": (
        "llama",
        dict(rope_parameters=dict(rope_type="yarn", rope_theta=5000.0, factor=4.0, **LENGTHS)),
    ),
    "llama-linear": (
        "llama",
        dict(rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=4.0)),
    ),
    "mistral": ("mistral", dict(num_key_value_heads=2, sliding_window=4)),
    "mistral-no-window": ("mistral", dict(num_key_value_heads=4, sliding_window=None)),
}  # fmt: skip
CLASSES = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig),
}


@pytest.fixture(scope="module", params=CONFIGURATIONS)
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config = CLASSES[kind]
    torch.manual_seed(0)
    theirs = model(config(initializer_range=0.3, **SIZES, **DECODER_IDS, **options)).eval()
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


class TestLLaMA(DecoderOnlyParity):
    """LLaMA's ways to count positions and share heads; Mistral's window."""


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(attention_bias=True), "attention_bias must be False, got True"),
        (dict(hidden_act="relu"), "hidden_act must be 'silu', got 'relu'"),
        (
            dict(rope_parameters=dict(rope_type="dynamic", factor=2.0, rope_theta=1e4)),
            r"rope_type of scaling must be one of \['linear', 'llama3', 'yarn'\], got 'dynamic'",
        ),
        (dict(num_attention_heads=3), "d_model must be divisible by num_heads"),
    ],
    ids=["bias", "activation", "positions", "heads"],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    config = SIZES | dict(rms_norm_eps=1e-5) | options
    assert_refused(tmp_path, message, model_type="llama", **config)
