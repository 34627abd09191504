"""The loss of hidden states against the plain formula."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import (
    projected_cross_entropy,
    projected_r_drop,
)

numpy = ops.convert_to_numpy


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


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.1)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_projected_r_drop(rng, dtype, tolerance, label_smoothing):
    hidden, table = rng.standard_normal((2, 3, 5, 8)), rng.standard_normal((11, 8))
    labels = rng.integers(0, 11, (3, 5))
    labels[1, 2:] = 0
    loss, likelihood = projected_r_drop(
        ops.cast(hidden, dtype), ops.cast(table, dtype), ops.cast(labels, "int32"),
        label_smoothing, 3.0, 0,
    )  # fmt: skip
    p, q = softmax(hidden @ table.T)
    chosen = [-np.log(np.take_along_axis(x, labels[..., None], -1)[..., 0]) for x in (p, q)]
    losses = [
        (1 - label_smoothing) * own - label_smoothing * np.log(x).mean(-1)
        for own, x in zip(chosen, (p, q), strict=True)
    ]
    divergence = (p * np.log(p / q)).sum(-1) + (q * np.log(q / p)).sum(-1)
    real = labels != 0
    np.testing.assert_allclose(numpy(likelihood)[real], chosen[0][real], atol=tolerance)
    expected = sum(losses) / 2 + 3.0 / 2 * divergence / 2
    np.testing.assert_allclose(numpy(loss)[real], expected[real], atol=tolerance, rtol=tolerance)
    assert np.isfinite(numpy(loss)).all()


def test_r_drop_of_two_equal_passes_is_the_cross_entropy(rng):
    hidden, table = rng.standard_normal((3, 5, 8)), rng.standard_normal((11, 8))
    hidden, table = (ops.cast(x, "float32") for x in (hidden, table))
    labels = ops.cast(rng.integers(1, 11, (3, 5)), "int32")
    expected = projected_cross_entropy(hidden, table, labels, 0.1, 0)
    found = projected_r_drop(ops.stack([hidden, hidden]), table, labels, 0.1, 5.0, 0)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(numpy(one), numpy(other), atol=1e-5)
