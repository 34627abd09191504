"""The symbolic output of a stack, made without a trace, is that of a call."""

from __future__ import annotations

import itertools

import keras
import numpy as np
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
    found = layer(x, **inputs)
    told, found = keras.tree.flatten(told), keras.tree.flatten(found)
    assert described(told) == described(found)


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


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "family,remat",
    cases([*itertools.product([Encoder, Decoder], [False, True])], (Encoder, True)),
)
def test_layer_drop_skips_blocks_in_training(family, remat, rng):
    stack = family(2, 2, 16, dropout=0.0, layer_drop=0.25)
    stack.remat = remat
    x = keras.ops.convert_to_tensor(rng.standard_normal((1, 3, 8)).astype("float32"))
    more = {"memory": x} if family is Decoder else {}

    def output(found):
        return keras.ops.convert_to_numpy(found[0] if family is Decoder else found)

    def through(*blocks):
        out = x
        for i in blocks:
            found = stack.blocks[i](out, **more)
            out = found[0] if family is Decoder else found
        return keras.ops.convert_to_numpy(out)

    assert np.allclose(output(stack(x, **more)), through(0, 1), atol=1e-5)
    expected = {kept: through(*kept) for kept in [(), (0,), (1,), (0, 1)]}
    counts = dict.fromkeys(expected, 0)
    for _ in range(100):
        found = output(stack(x, training=True, **more))
        (kept,) = (k for k, v in expected.items() if np.allclose(found, v, atol=1e-5))
        counts[kept] += 1
    # Of 100 draws 6, 19, 19 and 56 are expected: with probability 0.75 each block is kept.
    assert min(counts.values()) >= 1 and counts[0, 1] == max(counts.values())
    assert 60 < counts[0, 1] + counts[0,] < 90 and 60 < counts[0, 1] + counts[1,] < 90


@pytest.mark.parametrize("value", [-0.1, 1.0])
def test_layer_drop_in_range(value):
    with pytest.raises(ValueError, match=rf"layer_drop must be in \[0, 1\), got {value}"):
        Encoder(2, 2, 16, layer_drop=value)


ROTARY, LOCAL = dict(head_dim=4), dict(head_dim=4, theta=10.0)


@pytest.mark.parametrize("stack", [Encoder, Decoder])
def test_options_by_layer(stack):
    entries = [dict(window=2, rotary=LOCAL), dict(epsilon=0.1), dict(rotary=None)]
    layer = stack(5, 2, 16, rotary=ROTARY, by_layer=entries, window=7)
    layer = stack.from_config(layer.get_config())
    assert [block.options.window for block in layer.blocks] == [2, 7, 7, 2, 7]
    assert [block.options.epsilon for block in layer.blocks] == [1e-6, 0.1, 1e-6, 1e-6, 0.1]
    assert [rotary.theta for rotary in layer.rotaries] == [10.0, 10000.0]  # each made once
    layer.build((None, None, 8))
    found = layer._rotations(keras.ops.arange(3, dtype="int32"))
    assert found[0] is found[3] and found[1] is found[4] and found[2] is None
    assert found[0] is not found[1]


def test_the_length_at_which_rates_change():
    scaling = dict(rope_type="dynamic", factor=2.0, original_max_position_embeddings=9)
    by_layer = [dict(rotary=ROTARY | dict(scaling=scaling)), {}]
    layer = Decoder(2, 2, 16, rotary=ROTARY, by_layer=by_layer)
    assert (layer.length_limit, layer.length_scaling) == (9, "dynamic")
    layer = Decoder(2, 2, 16, rotary=ROTARY)
    assert (layer.length_limit, layer.length_scaling) == (None, None)


def test_options_by_layer_that_are_refused():
    with pytest.raises(ValueError, match=r"keys of by_layer must be of \[.*\], got \['windows'\]"):
        Decoder(1, 2, 16, by_layer=[dict(windows=2)])
    with pytest.raises(ValueError, match=r"by_layer must be \(\) with shared=True"):
        Encoder(2, 2, 16, shared=True, by_layer=[dict(window=2)])


def test_shared_blocks():
    """Each block for successive layers; the first ones for one more if the shares differ."""
    for shared, expected in ((True, [0] * 5), (2, [0, 0, 0, 1, 1]), (False, [0, 1, 2, 3, 4])):
        layer = Encoder(5, 2, 16, shared=shared)
        assert [layer.distinct_blocks.index(block) for block in layer.blocks] == expected
    with pytest.raises(ValueError, match="shared must be True, False or .* up to 5, got 6"):
        Encoder(5, 2, 16, shared=6)


def test_own_positions_need_positions():
    with pytest.raises(ValueError, match="relative_by_layer must be False without relative_posit"):
        Encoder(2, 2, 16, relative_by_layer=True)


def test_what_does_not_fit_is_traced_and_refused():
    with pytest.raises(ValueError, match="memory or cache must be given"):
        Decoder(1, 2, 16)(keras.KerasTensor((None, None, 8)))
    encoder = Encoder(1, 2, 16)
    encoder.build((None, None, 8))
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        encoder(keras.KerasTensor((None, None, 6)))
