"""Recorded attention weights: those that were used, of this thread, and nested."""

import threading

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import MultiHeadAttention, record_attention

BATCH, QUERIES, WIDTH, HEADS = 2, 5, 6, 2

numpy = ops.convert_to_numpy


def test_recorded_weights_reproduce_the_output(rng, randomize):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    layer = MultiHeadAttention(HEADS, name="looked_at")
    layer.build(x.shape)
    randomize(layer)
    plain, _ = layer(x)
    with record_attention() as recorded:
        output, cache = layer(x)
    layer(x[:, :1])  # not recorded any more
    assert list(recorded) == ["looked_at"]
    weights = numpy(recorded["looked_at"])
    assert weights.shape == (BATCH, HEADS, QUERIES, QUERIES)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    attended = np.einsum("bnts,bnsh->btnh", weights, numpy(cache["value"]))
    projected = layer.output_projection(attended.reshape(BATCH, QUERIES, WIDTH))
    np.testing.assert_allclose(numpy(output), numpy(projected), atol=1e-5)
    np.testing.assert_allclose(numpy(output), numpy(plain), atol=1e-5)  # by another kernel


def test_recorders_nest(rng, randomize):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    layers = [MultiHeadAttention(HEADS, name=name) for name in ("first", "second", "third")]
    for layer in layers:
        layer.build(x.shape)
    with record_attention() as outer:
        with record_attention() as inner:
            layers[0](x)
        layers[1](x)
    layers[2](x)
    assert list(inner) == ["first"]
    assert list(outer) == ["first", "second"]


def test_other_threads_are_not_recorded(rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    layers = [MultiHeadAttention(HEADS, name=name) for name in ("here", "there")]
    for layer in layers:
        layer.build(x.shape)
    with record_attention() as recorded:
        other = threading.Thread(target=layers[1], args=(x,))
        other.start()
        other.join()
        layers[0](x)
    assert list(recorded) == ["here"]


def test_an_error_ends_the_recording(rng):
    layer = MultiHeadAttention(HEADS, name="attention")
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    with pytest.raises(KeyError), record_attention() as recorded:
        raise KeyError
    layer(x)
    assert recorded == {}


def test_one_layer_alone(rng):
    x = rng.standard_normal((BATCH, QUERIES, WIDTH)).astype("float32")
    layers = [MultiHeadAttention(HEADS, name=name) for name in ("first", "second")]
    for layer in layers:
        layer.build(x.shape)
    with record_attention() as every, record_attention("second") as one:
        for layer in layers:
            layer(x)
    assert list(every) == ["first", "second"] and list(one) == ["second"]


def test_steps_record_cross_attention(rng, randomize):
    x, memory = (rng.standard_normal((BATCH, n, WIDTH)).astype("float32") for n in (1, 4))
    layer = MultiHeadAttention(HEADS, cross_attention=True, name="cross")
    layer.build(x.shape, memory.shape)
    randomize(layer)
    expected, cache = layer(x, memory=memory)
    with record_attention() as recorded:
        output, _ = layer(x, cache=cache)
    weights = numpy(recorded["cross"])
    assert weights.shape == (BATCH, HEADS, 1, 4)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(numpy(output), numpy(expected), atol=1e-5)
