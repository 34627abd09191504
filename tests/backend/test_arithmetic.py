"""The fast ways of the layers' arithmetic against the plain formulas."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import (
    BACKEND,
    attention,
    compiled,
    dropout,
    layer_norm,
    linear,
    projected_cross_entropy,
)

numpy = ops.convert_to_numpy


def without_gradients():
    if BACKEND == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_projected_cross_entropy(rng, dtype, tolerance, label_smoothing):
    hidden, table = rng.standard_normal((3, 5, 8)), rng.standard_normal((11, 8))
    labels = rng.integers(0, 11, (3, 5))
    labels[1, 2:] = 0
    loss, likelihood = projected_cross_entropy(
        ops.cast(hidden, dtype), ops.cast(table, dtype), ops.cast(labels, "int32"),
        label_smoothing, 0,
    )  # fmt: skip
    log_probabilities = np.log(softmax(hidden @ table.T))
    expected = -np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    real = labels != 0
    np.testing.assert_allclose(numpy(likelihood)[real], expected[real], atol=tolerance)
    expected = (1 - label_smoothing) * expected - label_smoothing * log_probabilities.mean(-1)
    np.testing.assert_allclose(numpy(loss)[real], expected[real], atol=tolerance)
    assert np.isfinite(numpy(loss)).all()


def test_projected_cross_entropy_of_padding_alone():
    loss, _ = projected_cross_entropy(
        ops.ones((2, 3, 4)), ops.ones((5, 4)), ops.zeros((2, 3), dtype="int32"), 0.1, 0
    )
    assert np.isfinite(numpy(loss)).all()


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout(rate):
    x = ops.ones((400, 101))
    seed = keras.random.SeedGenerator(3)
    dropped = numpy(dropout(x, rate, seed))
    kept = dropped != 0
    np.testing.assert_allclose(1 - kept.mean(), rate, atol=0.01)
    np.testing.assert_allclose(dropped[kept], 1 / (1 - rate), rtol=5e-3)
    assert len(np.unique(dropped)) == 2
    other = numpy(dropout(x, rate, seed, residual=3 * x))
    np.testing.assert_allclose(sorted(np.unique(other)), [3, 3 + 1 / (1 - rate)], rtol=5e-3)
    assert ((other > 3) != kept).any()  # drawn anew


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
@pytest.mark.parametrize("context", [contextlib.nullcontext, without_gradients])
def test_attention_is_weights_times_values(rng, dtype, tolerance, context):
    query, key, value = (rng.standard_normal((2, 3, n, 4)) for n in (5, 6, 6))
    masks = rng.random((2, 1, 5, 6)) < 0.6
    masks[1, :, 2] = False  # a query that may see nothing
    bias = rng.standard_normal((1, 3, 5, 6))
    inputs = [ops.cast(x, dtype) for x in (query, key, value)]
    for mask in (None, masks):
        for b in (None, bias):
            with context():
                ours = attention(
                    *inputs,
                    None if mask is None else ops.convert_to_tensor(mask),
                    None if b is None else ops.cast(b, "float32"),
                )
            logits = query @ key.swapaxes(2, 3) / 2 + (0 if b is None else b)
            if mask is not None:
                logits = np.where(mask, logits, -1e9)
            expected = softmax(logits) @ value
            np.testing.assert_allclose(numpy(ops.cast(ours, "float32")), expected, atol=tolerance)


@pytest.mark.parametrize("width", [3, 8, 32])
def test_attention_with_a_bias_in_compiled_code(rng, width):
    query, key, value = (rng.standard_normal((2, 2, n, width)) for n in (4, 6, 6))
    bias = rng.standard_normal((2, 1, 4, 6))
    inputs = [ops.cast(x, "float32") for x in (query, key, value, bias)]
    run = compiled(lambda q, k, v, b: attention(2 * q, k, v, bias=b), keras.layers.Identity())
    logits = 2 * query @ key.swapaxes(2, 3) / width**0.5 + bias
    np.testing.assert_allclose(numpy(run(*inputs)), softmax(logits) @ value, atol=1e-4)


def test_linear(rng):
    x, kernel, bias = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 4), (4, 5), (5,)))
    plain = x @ kernel + bias
    x = ops.convert_to_tensor(x)
    np.testing.assert_allclose(numpy(linear(x, kernel, bias)), plain, atol=1e-5)
    np.testing.assert_allclose(numpy(linear(x, kernel, None)), plain - bias, atol=1e-5)
    for name, function in (("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh)):
        ours = linear(x, kernel, bias, keras.activations.get(name))
        np.testing.assert_allclose(numpy(ours), function(plain), atol=1e-5)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
def test_layer_norm(rng, dtype, tolerance):
    x, gamma, beta = (rng.standard_normal(shape) for shape in ((2, 3, 8), (8,), (8,)))
    ours = layer_norm(*(ops.cast(a, dtype) for a in (x, gamma, beta)), 1e-6)
    assert keras.backend.standardize_dtype(ours.dtype) == dtype
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    expected = normal * gamma + beta
    np.testing.assert_allclose(numpy(ops.cast(ours, "float32")), expected, atol=tolerance)
