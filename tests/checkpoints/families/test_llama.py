"""LLaMA and Mistral of `transformers`: the same logits, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers

from keras_transformer.checkpoints.hugging_face import read_model, write_model
from keras_transformer.models import LLaMA, LLaMAConfig
from tests.checkpoints.families.parity import DECODER_IDS, DecoderOnlyParity, assert_refused, edit

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
    "llama-yarn-mscale": (
        "llama",
        dict(
            rope_parameters=dict(
                rope_type="yarn", rope_theta=5000.0, factor=4.0, mscale=1.0, mscale_all_dim=0.5,
                beta_fast=None, **LENGTHS,
            ),
        ),
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
            r"config.json does not fit: rope_parameters: rope_type of scaling must be one of "
            r"\['linear', 'llama3', 'yarn'\], got 'dynamic'",
        ),
        (
            dict(rope_parameters=dict(rope_type="llama3", factor=2.0, rope_theta=1e4)),
            r"config.json does not fit: rope_parameters: scaling of rope_type 'llama3' must have "
            r"\['low_freq_factor",
        ),
        (dict(num_attention_heads=3), "d_model must be divisible by num_heads"),
    ],
    ids=["bias", "activation", "positions", "numbers", "heads"],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    config = SIZES | dict(rms_norm_eps=1e-5) | options
    assert_refused(tmp_path, message, model_type="llama", **config)


@pytest.fixture
def written(tmp_path):
    """A small one of ours whose output is not tied, as a checkpoint."""
    sizes = dict(d_model=32, d_ff=8, num_layers=1, num_heads=4, num_kv_heads=2)
    write_model(tmp_path, LLaMA(LLaMAConfig(9, **sizes)))
    return tmp_path


def test_queries_and_keys_have_their_own_shapes(written):
    def move_rows(tensors):
        query, key = (f"model.layers.0.self_attn.{x}_proj.weight" for x in "qk")
        tensors[key] = np.concatenate([tensors[key], tensors[query][24:]])
        tensors[query] = tensors[query][:24].copy()

    edit(written, move_rows)
    message = r"q_proj.weight must have the shape \(32, 32\), got \(24, 32\)"
    with pytest.raises(ValueError, match=message):
        read_model(written)


def test_an_output_of_its_own(written):
    """It may be equal to the embedding; it may not be missing."""

    def copy(tensors):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].copy()

    edit(written, copy)
    assert not read_model(written).config.tie_output
    edit(written, lambda tensors: tensors.pop("lm_head.weight"))
    message = "lack lm_head.weight; .* missing if tie_word_embeddings is true"
    with pytest.raises(ValueError, match=message):
        read_model(written)


@pytest.mark.parametrize(
    "scaling",
    [
        dict(rope_type="linear", factor=2.0),  # as KerasHub's backbones have it
        dict(rope_type="linear", factor=2.0, original_max_position_embeddings=2048),
        dict(rope_type="yarn", factor=2.0, original_max_position_embeddings=8, mscale=None),
    ],
)
def test_scalings_are_written_as_they_are(scaling, tmp_path):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2)
    config = LLaMAConfig(9, **sizes, scaling=scaling)
    write_model(tmp_path, LLaMA(config))
    assert read_model(tmp_path).config.scaling == scaling
