"""Attention of the backend against the plain formula, with masks and biases."""

import contextlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import BACKEND, attention, compiled, mask_bias

numpy = ops.convert_to_numpy


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def without_gradients():
    if BACKEND == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()


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


@pytest.mark.parametrize("context", [contextlib.nullcontext, without_gradients])
def test_soft_cap_by_hand(rng, context):
    query, key, value = (rng.standard_normal((2, 3, n, 4)) for n in (5, 6, 6))
    masks = rng.random((2, 1, 5, 6)) < 0.6
    masks[..., 2] = True
    inputs = [ops.cast(x, "float32") for x in (query, key, value)]
    capped = 0.7 * np.tanh(query @ key.swapaxes(2, 3) / 2 / 0.7)
    for mask in (None, masks):
        given = None if mask is None else ops.convert_to_tensor(mask)
        logits = capped if mask is None else np.where(mask, capped, -1e9)
        for one in (given, given if given is None else mask_bias(given, "float32")):
            with context():
                found = numpy(attention(*inputs, one, soft_cap=0.7))
            np.testing.assert_allclose(found, softmax(logits) @ value, atol=1e-5)
