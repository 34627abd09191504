"""LLaMA's config: each field counts, and bad values are named."""

import numpy as np
import pytest

from keras_transformer.models import LLaMA, LLaMAConfig

V = 17
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=24, dropout=0.0)
INPUTS = {"token_ids": np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")}


@pytest.mark.parametrize(
    "options,change",
    [
        ({}, dict(num_kv_heads=2)),
        ({}, dict(head_dim=4)),
        (dict(head_dim=4), dict(theta=10.0)),
        ({}, dict(scaling=dict(rope_type="linear", factor=4.0))),
        ({}, dict(window=2)),
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
        (dict(theta=0.0), "theta must be above 0, got 0.0"),
        (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
    ],
)
def test_bad_configs(change, message):
    with pytest.raises(ValueError, match=message):
        LLaMAConfig(**dict(vocab_size=V, **SIZES) | change)
