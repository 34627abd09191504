"""Dense and normalization layers against the layers of Keras and against NumPy."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers.basic import (
    Bias,
    Dense,
    LayerNormalization,
    RMSNormalization,
    SoftCap,
)
from tests.backends import cases

numpy = ops.convert_to_numpy


@pytest.fixture
def x(rng):
    return rng.standard_normal((2, 5, 6)).astype("float32")


def copied(layer, theirs, x, randomize):
    """Return the output of both layers with the same random weights."""
    for each in (layer, theirs):
        each.build(x.shape)
    randomize(layer)
    theirs.set_weights(layer.get_weights())
    return numpy(layer(x)), numpy(theirs(x))


@pytest.mark.parametrize(
    "activation,use_bias",
    cases(
        [*itertools.product([None, "relu", "gelu"], [True, False])], ("gelu", True), (None, False)
    ),
)
def test_dense_equals_that_of_keras(x, randomize, activation, use_bias):
    options = dict(activation=activation, use_bias=use_bias)
    ours, theirs = copied(Dense(4, **options), keras.layers.Dense(4, **options), x, randomize)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("activation", cases([None, "relu"], "relu"))
def test_eight_bits_are_close(x, randomize, activation):
    layer = Dense(4, activation=activation)
    layer.build(x.shape)
    whole = numpy(randomize(layer)(x))
    layer.quantize("int8")
    assert keras.backend.standardize_dtype(layer.kernel.dtype) == "int8"
    np.testing.assert_allclose(numpy(layer(x)), whole, atol=0.03 * np.abs(whole).max())


def test_lora_trains_two_small_factors(x, randomize):
    layer = Dense(4)
    layer.build(x.shape)
    before = numpy(randomize(layer)(x))
    layer.enable_lora(2)
    np.testing.assert_allclose(numpy(layer(x)), before, atol=1e-6)  # the second factor is zero
    shapes = sorted(tuple(weight.shape) for weight in layer.trainable_weights)
    assert shapes == [(2, 4), (4,), (6, 2)]
    layer.lora_kernel_b.assign(np.ones((2, 4)))
    expected = before + x @ (numpy(layer.lora_kernel_a) @ np.ones((2, 4)))
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-5)


def test_layer_normalization_by_hand(x, randomize):
    layer = LayerNormalization(epsilon=0.1)
    layer.build(x.shape)
    gamma, beta = (numpy(weight) for weight in randomize(layer).weights)
    centered = x - x.mean(-1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 0.1) * gamma + beta
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-5)


def test_rms_normalization_by_hand(x, randomize):
    layer = RMSNormalization(epsilon=0.1)
    layer.build(x.shape)
    (scale,) = (numpy(weight) for weight in randomize(layer).weights)
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 0.1) * scale
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-5)


@pytest.mark.parametrize("trained", [True, False])
def test_a_bias_alone(x, randomize, trained):
    layer = Bias(trained)
    layer.build(x.shape)
    np.testing.assert_array_equal(numpy(layer(x)), x)  # it begins as zero
    randomize(layer)
    np.testing.assert_allclose(numpy(layer(x)), x + numpy(layer.bias), atol=1e-6)
    assert len(layer.trainable_weights) == trained


@pytest.mark.once("test_every_layer.py saves layers made of these under each backend")
@pytest.mark.parametrize(
    "layer",
    [
        lambda: Dense(4, activation="relu"),
        lambda: LayerNormalization(epsilon=0.1),
        lambda: RMSNormalization(epsilon=0.1),
        lambda: Bias(True),
    ],
    ids=["dense", "layer", "rms", "bias"],
)
def test_saved_and_loaded(x, saved_and_loaded, randomize, layer):
    model = randomize(keras.Sequential([keras.Input(x.shape[1:]), layer()]))
    loaded = saved_and_loaded(model)
    assert type(loaded.layers[-1]) is type(model.layers[-1])
    np.testing.assert_allclose(numpy(loaded(x)), numpy(model(x)), atol=1e-6)


def test_soft_cap_by_hand(x):
    layer = SoftCap(0.8)
    np.testing.assert_allclose(numpy(layer(x)), 0.8 * np.tanh(x / 0.8), atol=1e-6)
    assert SoftCap.from_config(layer.get_config()).cap == 0.8
