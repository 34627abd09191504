"""The residual connection with its norm, before or after the sub-layer."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import AddNorm
from keras_transformer.layers.residual import normalization

numpy = ops.convert_to_numpy


def layer_norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * gamma + beta


@pytest.fixture
def streams(rng):
    return (rng.standard_normal((2, 5, 6)).astype("float32") for _ in range(2))


def norm_of(layer, x):
    return layer_norm(x, numpy(layer.norm.gamma), numpy(layer.norm.beta))


def test_normalization_is_that_of_ba_et_al(rng, randomize):
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = normalization("layer", 1e-6, None, "norm")
    layer.build(x.shape)
    randomize(layer)
    expected = layer_norm(x, numpy(layer.gamma), numpy(layer.beta))
    np.testing.assert_allclose(numpy(layer(x)), expected, atol=1e-5)
    assert layer.name == "norm"


def test_rms_norm_only_scales(rng, randomize):
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    layer = normalization("rms", 1e-3, None, "norm")
    layer.build(x.shape)
    randomize(layer)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(numpy(layer(x)), x / root * numpy(layer.scale), atol=1e-5)


def test_an_unknown_norm():
    with pytest.raises(ValueError, match="norm must be one of .*'layer_no_bias', 'rms'., got 'bat"):
        normalization("batch", 1e-6, None, "norm")


def test_post_norm(streams, randomize):
    x, sublayer_output = streams
    layer = AddNorm(norm_first=False)
    layer.build(x.shape)
    randomize(layer)
    np.testing.assert_array_equal(numpy(layer(x)), x)
    expected = norm_of(layer, x + sublayer_output)
    np.testing.assert_allclose(numpy(layer(x, sublayer_output)), expected, atol=1e-5)


def test_pre_norm(streams, randomize):
    x, sublayer_output = streams
    layer = AddNorm(norm_first=True)
    layer.build(x.shape)
    randomize(layer)
    np.testing.assert_allclose(numpy(layer(x)), norm_of(layer, x), atol=1e-5)
    output = numpy(layer(x, sublayer_output))
    np.testing.assert_allclose(output, x + sublayer_output, rtol=1e-6)


def test_pre_norm_with_a_norm_of_the_output(streams, randomize):
    x, sublayer_output = streams
    layer = AddNorm(norm_first=True, norm="rms", epsilon=0.1, norm_output=True)
    layer.build(x.shape)
    randomize(layer)
    root = np.sqrt((sublayer_output**2).mean(-1, keepdims=True) + 0.1)
    expected = x + sublayer_output / root * numpy(layer.output_norm.scale)
    np.testing.assert_allclose(numpy(layer(x, sublayer_output)), expected, atol=1e-5)
    root = np.sqrt((x**2).mean(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(numpy(layer(x)), x / root * numpy(layer.norm.scale), atol=1e-5)


def test_pre_norm_with_a_norm_of_the_output_only(streams, randomize):
    x, sublayer_output = streams
    options = dict(norm_input=False, norm_output=True, residual_scale=0.5)
    layer = AddNorm(norm_first=True, **options)
    layer.build(x.shape)
    randomize(layer)
    np.testing.assert_array_equal(numpy(layer(x)), x)
    norm = layer.output_norm
    normalized = layer_norm(sublayer_output, numpy(norm.gamma), numpy(norm.beta))
    output = numpy(layer(x, sublayer_output))
    np.testing.assert_allclose(output, x + 0.5 * normalized, atol=1e-5)
    assert len(layer.weights) == 2 and layer.get_config().items() >= options.items()


def test_layer_scale(streams, randomize):
    x, sublayer_output = streams
    layer = AddNorm(norm_first=True, layer_scale=0.1)
    layer.build(x.shape)
    np.testing.assert_allclose(numpy(layer(x, sublayer_output)), x + 0.1 * sublayer_output, 1e-5)
    randomize(layer)
    expected = x + sublayer_output * numpy(layer.layer_scale)
    np.testing.assert_allclose(numpy(layer(x, sublayer_output)), expected, rtol=1e-5)


def test_dropout_drops_the_sublayers_output_in_training_only():
    ones, layer = np.ones((1, 100, 10), "float32"), AddNorm(norm_first=True, dropout=0.25)
    np.testing.assert_array_equal(numpy(layer(0 * ones, ones)), ones)
    trained = numpy(layer(0 * ones, ones, training=True))
    dropped = trained == 0
    assert 0.2 < dropped.mean() < 0.3
    np.testing.assert_allclose(trained[~dropped], 1 / 0.75, rtol=1e-6)
    # The stream itself is never dropped.
    np.testing.assert_array_equal(numpy(layer(ones, 0 * ones, training=True)), ones)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("norm_first", [False, True])
def test_round_trips(rng, round_trips, norm_first):
    layer = AddNorm(norm_first, dropout=0.25, norm_output=norm_first, name="add_norm")
    x = rng.standard_normal((2, 5, 6)).astype("float32")
    loaded = round_trips(layer, x=x, sublayer_output=x[::-1].copy())
    assert loaded.get_layer("add_norm").rate == 0.25


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
def test_both_uses_in_one_graph(rng, saved_and_loaded, randomize):
    inputs = keras.Input((None, 6))
    for norm_first in (False, True):
        layer = AddNorm(norm_first)
        model = keras.Model(inputs, layer(inputs, keras.layers.Dense(6)(layer(inputs))))
        randomize(model)
        x = rng.standard_normal((2, 5, 6)).astype("float32")
        np.testing.assert_allclose(numpy(saved_and_loaded(model)(x)), numpy(model(x)), atol=1e-6)
