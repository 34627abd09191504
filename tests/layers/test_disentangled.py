"""Disentangled attention: its equation in NumPy, buckets by hand, and padding."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import record_attention
from keras_transformer.layers.disentangled import (
    DisentangledAttention,
    DisentangledEncoder,
    relative_rows,
)


def test_rows():
    """Two distances of their own, then ceil(log(d / 2) / log(7 / 2) + 2) until the last."""
    found = relative_rows(4, 8).tolist()
    assert found[8:] == [4, 5, 6, 7, 7, 7, 7, 7, 7]  # 4 is distance 0, 7 the last row
    assert found[:8] == [0, 1, 1, 1, 1, 1, 2, 3]
    usual = relative_rows(256, 512)
    assert usual[512 : 512 + 129].tolist() == list(range(256, 385))
    assert (np.diff(usual) >= 0).all() and usual[[0, -1]].tolist() == [0, 511]


def test_the_equation(randomize, rng):
    layer, (batch, length, width) = DisentangledAttention(2), (2, 5, 8)
    x, relative = (rng.standard_normal(s).astype("float32") for s in [(2, 5, 8), (4, 8)])
    rows = rng.integers(0, 4, (length, length)).astype("int32")
    layer.build((batch, length, width))
    randomize(layer)
    with record_attention() as maps:
        output, cache = layer(x, relative, rows)
    kernel, bias = (
        ops.convert_to_numpy(x) for x in (layer.query_key_value.kernel, layer.query_key_value.bias)
    )

    def heads(y):  # the columns of a head are its query, key and value, one after the other
        y = (y @ kernel + bias).reshape(*y.shape[:-1], 2, 3, 4)
        return [np.moveaxis(y[..., i, :], -2, -3) for i in range(3)]

    (q, k, v), (qr, kr, _) = heads(x), heads(relative)
    scores = np.zeros((batch, 2, length, length))
    for b, n, i, j in np.ndindex(scores.shape):
        row = rows[i, j]
        scores[b, n, i, j] = (
            q[b, n, i] @ k[b, n, j] + q[b, n, i] @ kr[n, row] + qr[n, row] @ k[b, n, j]
        ) / np.sqrt(3 * 4)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = np.moveaxis(weights @ v, 1, 2).reshape(batch, length, width)
    expected = expected @ ops.convert_to_numpy(layer.output_projection.kernel)
    expected += ops.convert_to_numpy(layer.output_projection.bias)
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-4)
    (found,) = maps.values()
    np.testing.assert_allclose(ops.convert_to_numpy(found), weights, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(cache["value"]), v, atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_padding_and_far_distances(randomize, rng):
    """Padding changes nothing; distances beyond the last share its vector."""
    layer = DisentangledEncoder(1, 2, 12, num_buckets=4, max_distance=6)
    x = rng.standard_normal((1, 11, 8)).astype("float32")
    layer.build(x.shape)
    randomize(layer)
    mask = np.arange(11)[None, None, None] < 9
    found = ops.convert_to_numpy(layer(x, attention_mask=mask))[:, :9]
    np.testing.assert_allclose(found, ops.convert_to_numpy(layer(x[:, :9])), atol=1e-5)
    again = DisentangledEncoder.from_config(layer.get_config())
    again.build(x.shape)
    for one, other in zip(layer.weights, again.weights, strict=True):
        assert one.path.partition("/")[2] == other.path.partition("/")[2]
        other.assign(one)
    np.testing.assert_allclose(
        ops.convert_to_numpy(again(x)), ops.convert_to_numpy(layer(x)), atol=1e-6
    )


def test_options_that_do_not_fit():
    options = dict(norm_first=True, window=3, rotary=dict(head_dim=4), layer_drop=0.1)
    for name, value in options.items():
        with pytest.raises(ValueError, match=f"{name} must be left out in disentangled attention"):
            DisentangledEncoder(1, 2, 12, **{name: value})


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_dropout(rate, rng):
    keras.utils.set_random_seed(0)
    layer = DisentangledEncoder(1, 2, 12, num_buckets=4, max_distance=6, dropout=rate)
    x = rng.standard_normal((1, 5, 8)).astype("float32")
    one, other = (ops.convert_to_numpy(layer(x, training=True)) for _ in range(2))
    assert (np.abs(one - other).max() > 1e-3) == (rate > 0)
