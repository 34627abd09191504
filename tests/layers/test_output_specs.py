"""The symbolic output of a stack, made without a trace, is that of a call."""

from __future__ import annotations

import itertools

import keras
import pytest

from keras_transformer.layers import Decoder, Encoder
from tests.backends import cases

OPTIONS = [
    {},
    dict(norm_first=True, norm="rms", head_dim=6, use_bias=False),
    dict(num_kv_heads=1, rotary=dict(head_dim=4)),
    dict(relative_positions=(8, 16)),
    dict(rotary=dict(head_dim=4), by_layer=[dict(window=2, rotary=None), dict(num_kv_heads=1)]),
]
DTYPES = ["float32", "mixed_bfloat16", "bfloat16"]


def described(tree):
    return [(tuple(x.shape), keras.backend.standardize_dtype(x.dtype)) for x in tree]


def assert_told(layer, x, **inputs):
    """The output of symbolic inputs of these shapes is described as that of the inputs."""
    told = layer(symbol(x), **{name: symbol(value) for name, value in inputs.items()})
    assert all(part.built for part in layer._flatten_layers())
    outputs = layer(x, **inputs)
    told, outputs = keras.tree.flatten(told), keras.tree.flatten(outputs)
    assert described(told) == described(outputs)


def symbol(x):
    return keras.KerasTensor(tuple(x.shape), dtype=keras.backend.standardize_dtype(x.dtype))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", cases(DTYPES, "mixed_bfloat16"))
def test_encoder(options, dtype):
    layer = Encoder(2, 2, 16, dtype=dtype, **options)
    assert_told(layer, keras.ops.ones((2, 5, 8)))
    unknown = layer(keras.KerasTensor((None, None, 8)))
    assert unknown.shape == (None, None, 8)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    "dtype,cross_attention",
    cases([*itertools.product(DTYPES, [True, False])], ("mixed_bfloat16", True)),
)
def test_decoder(options, dtype, cross_attention):
    layer = Decoder(2, 2, 16, cross_attention=cross_attention, dtype=dtype, **options)
    more = {}
    if cross_attention:
        mask = keras.ops.ones((2, 1, 1, 7), dtype="bool")
        more = dict(memory=keras.ops.ones((2, 7, 8)), cross_attention_mask=mask)
    assert_told(layer, keras.ops.ones((2, 5, 8)), **more)


def test_what_does_not_fit_is_traced_and_refused():
    with pytest.raises(ValueError, match="memory or cache must be given"):
        Decoder(1, 2, 16)(keras.KerasTensor((None, None, 8)))
    encoder = Encoder(1, 2, 16)
    encoder.build((None, None, 8))
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        encoder(keras.KerasTensor((None, None, 6)))
