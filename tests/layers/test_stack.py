"""Stacks of blocks: layer drop, options by layer, shared blocks."""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest

from keras_transformer.layers import Decoder, Encoder
from tests.backends import cases


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
