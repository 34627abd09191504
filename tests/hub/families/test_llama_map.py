"""LLaMA and Mistral of `transformers`: the same logits, and the same weights back."""

import numpy as np
import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.models import LLaMA, LLaMAConfig
from tests.backends import cases
from tests.hub.families.parity import (
    DECODER_IDS,
    DecoderOnlyParity,
    assert_refused,
    edit,
    fill,
)

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
    "llama-dynamic": (
        "llama",
        dict(
            max_position_embeddings=8,
            head_dim=6,
            rope_parameters=dict(rope_type="dynamic", rope_theta=5000.0, factor=4.0),
        ),
    ),
    "llama-longrope": (
        "llama",
        dict(
            num_key_value_heads=2,
            rope_parameters=dict(
                rope_type="longrope", rope_theta=5000.0, short_factor=[1.0, 1.5],
                long_factor=[2.0, 7.0], **LENGTHS,
            ),
        ),
    ),
    "llama-bias": ("llama", dict(attention_bias=True, mlp_bias=True, num_key_value_heads=2)),
    "smollm3": ("smollm3", dict(num_hidden_layers=5, num_key_value_heads=2)),
    "smollm3-windows": (
        "smollm3",
        dict(
            num_hidden_layers=4, no_rope_layers=[1, 0, 1, 0], use_sliding_window=True,
            sliding_window=5, attention_bias=True, mlp_bias=True, tie_word_embeddings=False,
        ),
    ),
    "mistral": ("mistral", dict(num_key_value_heads=2, sliding_window=4)),
    "mistral-no-window": ("mistral", dict(num_key_value_heads=4, sliding_window=None)),
}  # fmt: skip
CLASSES = {
    "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
    "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig),
    "smollm3": (transformers.SmolLM3ForCausalLM, transformers.SmolLM3Config),
}


@pytest.fixture(
    scope="module",
    params=cases(CONFIGURATIONS, "llama-dynamic", "smollm3-windows"),
)
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config = CLASSES[kind]
    torch.manual_seed(0)
    theirs = model(config(initializer_range=0.3, **SIZES | DECODER_IDS | options)).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


class TestLLaMA(DecoderOnlyParity):
    """Ways to count positions and to share heads; Mistral's window; layers without positions."""


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(attention_bias=1), "attention_bias must be true or false, got 1"),
        (dict(mlp_bias=1), "mlp_bias must be true or false, got 1"),
        (
            dict(model_type="smollm3", layer_types=["chunked_attention"] * 2),
            "layer_types must be a list of 'full_attention' and 'sliding_attention', or null, got",
        ),
        (dict(model_type="smollm3", no_rope_layers=[1]), "no_rope_layers must have 2 entries, one"),
        (dict(model_type="smollm3", no_rope_layers=[2, 1]), "no_rope_layers must be a list of 0 a"),
        (dict(hidden_act="relu"), "hidden_act must be 'silu', got 'relu'"),
        (
            dict(rope_parameters=dict(rope_type="proportional", factor=2.0, rope_theta=1e4)),
            r"config.json does not fit: rope_parameters: rope_type of scaling must be one of "
            r"\['dynamic', 'linear', 'llama3', 'longrope', 'yarn'\], got 'proportional'",
        ),
        (
            dict(rope_parameters=dict(rope_type="llama3", factor=2.0, rope_theta=1e4)),
            r"config.json does not fit: rope_parameters: scaling of rope_type 'llama3' must have "
            r"\['low_freq_factor",
        ),
        (dict(num_attention_heads=3), "hidden_size must be divisible by num_attention_heads"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    config = SIZES | dict(rms_norm_eps=1e-5, model_type="llama") | options
    assert_refused(tmp_path, message, **config)


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
        dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=1024),
        dict(
            rope_type="longrope", factor=2.0, original_max_position_embeddings=8,
            short_factor=[1.0, 1.5], long_factor=[2.0, 4.0],
        ),
    ],
)  # fmt: skip
def test_scalings_are_written_as_they_are(scaling, tmp_path):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2)
    config = LLaMAConfig(9, **sizes, scaling=scaling)
    write_model(tmp_path, LLaMA(config))
    assert read_model(tmp_path).config.scaling == scaling
