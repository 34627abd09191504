"""Phi-3 and GLM of `transformers`: the same logits, tokens and joined weights back."""

import json

import numpy as np
import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_config, read_model
from tests.backends import cases
from tests.hub.families.parity import (
    DECODER_IDS,
    DecoderOnlyParity,
    assert_refused,
    configure,
    edit,
    fill,
)

SIZES = dict(
    hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
    max_position_embeddings=64,
)  # fmt: skip
FACTORS = dict(short_factor=[1.0, 1.5, 2.0], long_factor=[2.0, 3.0, 9.0])
LONG = dict(
    original_max_position_embeddings=8,
    rope_parameters=dict(rope_type="longrope", rope_theta=5000.0, **FACTORS),
)
CONFIGURATIONS = {
    "mini": dict(sliding_window=5),
    "grouped": dict(num_key_value_heads=2, tie_word_embeddings=True),
    "long": LONG,
    "long-window": LONG | dict(sliding_window=6, num_key_value_heads=1),
    "partial": LONG
    | dict(
        hidden_size=32,
        rope_parameters=dict(LONG["rope_parameters"], partial_rotary_factor=0.75),
    ),
    "glm": dict(num_key_value_heads=2, head_dim=8),
    "glm-long": dict(head_dim=16, rope_parameters=dict(
        rope_type="linear", rope_theta=500.0, factor=4.0, partial_rotary_factor=0.25,
    ), attention_bias=False),
}  # fmt: skip


def phi(**options):
    return made(transformers.Phi3ForCausalLM, transformers.Phi3Config, **options)


def made(model, config, **options):
    torch.manual_seed(0)
    theirs = model(config(**SIZES | DECODER_IDS | options))
    fill(theirs)
    return theirs.eval()


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "long-window", "glm"))
def pair(request, tmp_path_factory):
    kind, options = request.param, CONFIGURATIONS[request.param]
    if kind.startswith("glm"):
        theirs = made(transformers.GlmForCausalLM, transformers.GlmConfig, **options)
    else:
        theirs = phi(**options)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return theirs.config.model_type, theirs, folder, read_model(folder, dtype="float32")


class TestPhi(DecoderOnlyParity):
    """One tensor for queries, keys and values, one for the gated layer; two sets of rates.

    Of each head, a part rotates; of GLM neighbours, not halves.
    """


@pytest.mark.once("fields and arrays in files")
def test_what_the_first_files_say(tmp_path):
    """The type "su", in `rope_scaling`, is "longrope"; the original length is outside of it."""
    theirs = phi(**LONG)
    theirs.save_pretrained(tmp_path)
    config = read_model(tmp_path).config
    path = tmp_path / "config.json"
    old = json.loads(path.read_text())
    del old["rope_parameters"]
    path.write_text(json.dumps(old))
    configure(tmp_path, rope_theta=5000.0, rope_scaling=dict(type="su", **FACTORS))
    assert read_model(tmp_path).config == config
    assert config.scaling["factor"] == 8.0
    assert read_config(tmp_path)[0]["original_max_position_embeddings"] == 8


@pytest.mark.once("fields and arrays in files")
def test_a_joined_tensor_of_another_size(tmp_path):
    phi().save_pretrained(tmp_path)
    name = "model.layers.0.mlp.gate_up_proj.weight"
    edit(tmp_path, lambda tensors: tensors.update({name: np.ones((30, 24), "float32")}))
    with pytest.raises(ValueError, match=r"must have the shape \(40, 24\), got \(30, 24\)"):
        read_model(tmp_path)


@pytest.mark.parametrize(
    "options,message",
    [
        (
            dict(rope_scaling=dict(type="linear", factor=2.0)),
            "rope_type of rope_scaling must be 'default' or 'longrope', got 'linear'",
        ),
        (
            dict(rope_scaling=dict(type="yarn", factor=2.0)),
            r"scaling of rope_type 'longrope' must have \['short_factor', 'long_factor'\]",
        ),
        (
            dict(rope_scaling=dict(type="longrope", short_factor=[1.0], long_factor=[1.0])),
            "short_factor of scaling must have 3 numbers, half of the width of a head, got 1",
        ),
        (
            dict(partial_rotary_factor=0.25),
            "partial_rotary_factor must be even and at most .*=6, got 1",
        ),
        (
            dict(partial_rotary_factor=1.5),
            "partial_rotary_factor must be a number above 0 and at most 1, got 1.5",
        ),
    ],
    ids=["linear", "yarn", "numbers", "odd", "above 1"],
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    assert_refused(tmp_path, message, model_type="phi3", **SIZES | options)
