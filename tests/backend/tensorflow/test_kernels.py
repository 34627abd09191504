"""The kernels of a training step on TensorFlow against the plain formulas: values and gradients."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.backend import attention, dropout, layer_norm, training_step
from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels

DTYPES = pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.03)])


def check(function, arrays, dtype, tolerance):
    """The function's values and gradients are those inside a training step; gives the values."""

    def traced(step):
        @tf.function(autograph=False)
        def run(*tensors):
            with tf.GradientTape() as tape, step():
                tape.watch(tensors)
                value = function(*tensors)
                total = tf.reduce_sum(value * value)
            return value, *tape.gradient(total, tensors)

        found = run(*(tf.cast(x, dtype) for x in arrays))
        return [tf.cast(x, tf.float32).numpy() for x in found]

    plain, kernels = traced(contextlib.nullcontext), traced(training_step)
    for expected, found in zip(plain, kernels, strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=5 * tolerance)
    return plain[0]


@pytest.fixture
def called(monkeypatch):
    """Which of the kernels were used."""
    names = []
    for name in ("layer_norm", "attention", "dropout"):
        kernel = getattr(tensorflow_kernels, name)

        def counted(*arguments, name=name, kernel=kernel):
            names.append(name)
            return kernel(*arguments)

        monkeypatch.setattr(tensorflow_kernels, name, counted)
    return names


@DTYPES
def test_layer_norm(rng, called, dtype, tolerance):
    x = 3 * rng.normal(size=(2, 5, 8)) + 1
    gamma, beta = rng.normal(size=(2, 8)).astype("float32")

    def norm(x, gamma, beta):
        return layer_norm(x, gamma, beta, 1e-6)

    check(norm, (x, gamma, beta), dtype, tolerance)
    assert called == ["layer_norm"]


@DTYPES
@pytest.mark.parametrize("masked", [False, True])
def test_attention(rng, called, dtype, tolerance, masked):
    query, key, value = rng.normal(size=(3, 2, 3, 4, 8))
    mask = tf.constant(rng.random((2, 1, 4, 4)) < 0.6) if masked else None
    if masked:
        mask = tf.tensor_scatter_nd_update(mask, [[0, 0, 1]], [[False] * 4])  # may see nothing

    def attend(query, key, value):
        return attention(query, key, value, mask)

    check(attend, (query, key, value), dtype, tolerance)
    assert called == ["attention"]


def test_attention_with_a_bias_takes_the_plain_formula(rng, called):
    query, key, value = rng.normal(size=(3, 1, 2, 3, 4)).astype("float32")
    bias = tf.constant(rng.normal(size=(1, 2, 3, 3)).astype("float32"))

    def attend(query, key, value):
        return attention(query, key, value, None, bias)

    check(attend, (query, key, value), "float32", 1e-5)
    assert called == []


@DTYPES
@pytest.mark.parametrize("residual", [False, True])
def test_dropout(rng, called, dtype, tolerance, residual):
    arrays = rng.normal(size=(1 + residual, 4, 6, 8))
    generators = [keras.random.SeedGenerator(7) for _ in range(2)]  # one for each tracing

    def drop(*tensors):
        return dropout(tensors[0], 0.25, generators.pop(), *tensors[1:])

    value = check(drop, arrays, dtype, tolerance)
    assert called == ["dropout"]
    if not residual:
        assert 0.1 < np.mean(value == 0) < 0.4
