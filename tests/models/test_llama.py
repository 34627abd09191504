"""LLaMA's config: each field counts, and bad values are named."""

import json

import numpy as np
import pytest

from keras_transformer.models import LLaMA, LLaMAConfig

V = 17
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=24, dropout=0.0)
INPUTS = {"token_ids": np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")}


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize(
    "options,change",
    [
        ({}, dict(num_kv_heads=2)),
        ({}, dict(head_dim=4)),
        (dict(head_dim=4), dict(theta=10.0)),
        ({}, dict(scaling=dict(rope_type="linear", factor=4.0))),
        ({}, dict(window=2)),
        (dict(window=2), dict(window_layers=(1,))),
        ({}, dict(no_rotary=(1,))),
        ({}, dict(qkv_bias=True)),
        ({}, dict(output_bias=True)),
        ({}, dict(feed_forward_bias=True)),
        ({}, dict(qk_norm=True)),
        (dict(qk_norm=True), dict(qk_norm="whole")),
        ({}, dict(norm_output=True)),
        (dict(norm_output=True), dict(norm_input=False)),
        ({}, dict(embedding_scale=3.0)),
        ({}, dict(residual_scale=0.5)),
        ({}, dict(query_scale=0.1)),
        ({}, dict(logit_divisor=8.0)),
        ({}, dict(kernel="elu")),
        ({}, dict(num_experts=4)),
        (dict(num_experts=4), dict(experts_per_token=1)),
        (dict(num_experts=4), dict(expert_d_ff=8)),
        (dict(num_experts=4), dict(normalize_routing=False)),
        (dict(num_experts=4), dict(dense_layers=(1,))),
        ({}, dict(epsilon=0.1)),
        ({}, dict(tie_output=True)),
    ],
    ids=lambda fields: next(iter(fields), "plain"),
)
def test_each_field_counts(options, change, assert_counts):
    assert_counts(LLaMA, LLaMAConfig(V, **SIZES, **options), INPUTS, **change)


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(num_kv_heads=3), "num_heads must be divisible by num_kv_heads"),
        (dict(head_dim=3), "head_dim must be even for rotary positions, got 3"),
        (dict(window=0), "window must be a whole number of at least 1, got 0"),
        (dict(window_layers=(0,)), "window must be given with window_layers, got None"),
        (dict(window=2, window_layers=()), "window_layers must be one or more blocks, or None"),
        (dict(window=2, window_layers=(2,)), "window_layers must be indices of blocks below num_"),
        (dict(window=2, kernel="elu"), "window must be None with 'elu', got 2"),
        (dict(no_rotary="1"), "no_rotary must be indices of blocks below num_layers=2, got '1'"),
        (
            dict(scaling=dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=9)),
            "head_dim must be above 2 for rope_type 'dynamic', got 2",
        ),
        (dict(num_experts=2, experts_per_token=3), "experts_per_token must be at most num_experts"),
        (dict(num_experts=2, expert_d_ff=0), "expert_d_ff must be a whole number of at least 1"),
        (dict(num_experts=2, dense_layers=(2,)), "dense_layers must be indices of blocks below nu"),
        (dict(dense_layers=(1,)), r"dense_layers must be \(\) without num_experts, got \(1,\)"),
        (dict(balance_loss=0.1), "balance_loss must be 0.0 without num_experts, got 0.1"),
        (
            dict(num_experts=2, feed_forward_bias=True),
            "feed_forward_bias must be False with num_experts, got True",
        ),
        (dict(logit_divisor=0.0), "logit_divisor must be above 0, got 0.0"),
        (dict(query_scale=1.0, kernel="elu"), "query_scale must be None with 'elu', got 1.0"),
        (dict(theta=0.0), "theta must be above 0, got 0.0"),
        (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
    ],
)
def test_bad_configs(change, message):
    with pytest.raises(ValueError, match=message):
        LLaMAConfig(**dict(vocab_size=V, **SIZES) | change)


def test_layers_are_plain_and_one_form():
    """Equal configs are equal, also after JSON, which has no tuples."""
    config = LLaMAConfig(V, **SIZES, window=2, window_layers=[1], no_rotary=[1, 0, 1])
    assert (config.window_layers, config.no_rotary) == ((1,), (0, 1))
    again = LLaMAConfig.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert LLaMAConfig(V, **SIZES, window=2, window_layers=(0, 1)).window_layers is None
    assert LLaMAConfig(V, **SIZES, num_experts=2, expert_d_ff=12).expert_d_ff is None
