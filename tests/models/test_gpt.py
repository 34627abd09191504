"""GPT's config: each field counts, and bad values are named."""

import keras
import numpy as np
import pytest

from keras_transformer.models import GPT, GPTConfig

V = 17
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=24, dropout=0.0)
INPUTS = {"token_ids": np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")}


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize(
    "change",
    [
        dict(activation="relu"),
        dict(epsilon=0.1),
        dict(num_heads=2),
        dict(use_bias=False),
        dict(tie_output=False),
        dict(kernel="elu"),
        dict(kernel="performer"),
    ],
    ids=lambda change: next(iter(change)),
)
def test_each_field_counts(change, assert_counts):
    assert_counts(GPT, GPTConfig(V, **SIZES), INPUTS, **change)


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(vocab_size=0), "vocab_size must be a whole number of at least 1, got 0"),
        (dict(num_heads=3), "d_model must be divisible by num_heads"),
        (dict(activation="tanh"), "activation must be one of"),
        (dict(kernel="x"), r"kernel must be one of \(None, 'elu', 'performer'\), got 'x'"),
        (dict(eos_id=V), r"eos_id must be in \[0, 17\), got 17"),
    ],
)
def test_bad_configs(change, message):
    with pytest.raises(ValueError, match=message):
        GPTConfig(**dict(vocab_size=V, **SIZES) | change)


def test_a_d_ff_of_four_widths():
    assert GPTConfig(V, d_model=8, num_heads=2).d_ff == 32
    assert keras.saving.get_registered_object("keras_transformer>GPT") is GPT
