"""The feed-forward network against equation 2."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import FeedForward

numpy = ops.convert_to_numpy


NON_LINEARITIES = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x))}


@pytest.mark.parametrize("activation", NON_LINEARITIES)
def test_equation_2(rng, randomize, activation):
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = FeedForward(10, activation)
    layer.build(x.shape)
    randomize(layer)
    (w_1, b_1), (w_2, b_2) = (
        (numpy(dense.kernel), numpy(dense.bias))
        for dense in (layer.hidden, layer.output_projection)
    )
    assert w_1.shape == (6, 10) and w_2.shape == (10, 6)
    expected = NON_LINEARITIES[activation](x @ w_1 + b_1) @ w_2 + b_2
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-5)


def test_gate_without_bias(rng, randomize):
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = FeedForward(10, "gelu_tanh", gated=True, use_bias=False)
    layer.build(x.shape)
    randomize(layer)
    hidden, gate, output = map(numpy, (layer.hidden.kernel, layer.gate.kernel, layer.weights[2]))
    inner = x @ hidden
    inner = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
    np.testing.assert_allclose(numpy(layer(x)), (inner * (x @ gate)) @ output, atol=1e-4)


def test_each_position_by_itself(rng):
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = FeedForward(10)
    np.testing.assert_allclose(numpy(layer(x))[:, 1:2], numpy(layer(x[:, 1:2])), atol=1e-6)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"activation": "gelu_tanh", "gated": True, "use_bias": False},
        {"dtype": "mixed_bfloat16"},
    ],
)
def test_round_trips(rng, round_trips, options):
    layer = FeedForward(10, name="feed_forward", **options)
    round_trips(layer, x=rng.standard_normal((2, 5, 6)).astype("float32"))


def test_unknown_activation():
    with pytest.raises(ValueError, match="swoosh"):
        FeedForward(10, "swoosh")
