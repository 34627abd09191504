"""Qwen2 and Qwen3 of `transformers`: the same logits and tokens, and the same weights back."""

import pytest
import torch
import transformers

from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.backends import cases
from tests.hub.families.parity import (
    DECODER_IDS,
    DecoderOnlyParity,
    assert_refused,
    fill,
)

SIZES = dict(
    hidden_size=20, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=32,
)  # fmt: skip
WINDOWS = dict(use_sliding_window=True, sliding_window=5)
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
CONFIGURATIONS = {
    "qwen2": ("qwen2", dict(hidden_size=24)),
    "qwen2-tied": ("qwen2", dict(hidden_size=24, tie_word_embeddings=True, num_key_value_heads=1)),
    "qwen2-windows": ("qwen2", dict(hidden_size=24, max_window_layers=1, **WINDOWS)),
    "qwen2-off": ("qwen2", dict(hidden_size=24, sliding_window=5, max_window_layers=0)),
    "qwen3": ("qwen3", dict(head_dim=6)),
    "qwen3-tied-bias": ("qwen3", dict(head_dim=8, attention_bias=True, tie_word_embeddings=True)),
    "qwen3-windows": ("qwen3", dict(head_dim=6, layer_types=MIXED, **WINDOWS)),
    "qwen3-all-windows": ("qwen3", dict(head_dim=6, max_window_layers=0, **WINDOWS)),
    "qwen3-yarn": (
        "qwen3",
        dict(
            head_dim=6,
            rope_parameters=dict(
                rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=8
            ),
        ),
    ),
}
CLASSES = {
    "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config),
    "qwen3": (transformers.Qwen3ForCausalLM, transformers.Qwen3Config),
}


@pytest.fixture(scope="module", params=cases(CONFIGURATIONS, "qwen2-windows", "qwen3-yarn"))
def pair(request, tmp_path_factory):
    kind, options = CONFIGURATIONS[request.param]
    model, config = CLASSES[kind]
    torch.manual_seed(0)
    theirs = model(config(**SIZES | DECODER_IDS | options)).eval()
    fill(theirs)
    folder = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(folder)
    return kind, theirs, folder, read_model(folder, dtype="float32")


class TestQwen(DecoderOnlyParity):
    """Biases of queries, keys and values; norms of queries and keys; windows by layer."""


def test_what_is_read(pair):
    _, theirs, _, ours = pair
    kinds = [x == "sliding_attention" for x in theirs.config.layer_types]
    window = theirs.config.sliding_window
    assert [block.options.window for block in ours.decoder.blocks] == [
        window if has else None for has in kinds
    ]


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(hidden_act="gelu"), "hidden_act must be 'silu', got 'gelu'"),
        (dict(layer_types=["full_attention"]), "layer_types must have num_hidden_layers=3 entries"),
        (
            dict(layer_types=["chunked_attention"] * 3),
            "layer_types must be a list of 'full_attention' and 'sliding_attention', or null, got",
        ),
        (dict(layer_types=MIXED), "layer_types must be 'full_attention' without a sliding_window"),
        (dict(max_window_layers=-1), "max_window_layers must be a whole number of at least 0"),
        (dict(use_sliding_window=1), "use_sliding_window must be true or false, got 1"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_what_is_not_known_is_refused(options, message, tmp_path):
    assert_refused(tmp_path, message, model_type="qwen3", **SIZES | options)
