"""Layer norm and RMS norm against the plain formulas."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import BACKEND, layer_norm, rms_norm

numpy = ops.convert_to_numpy
TOLERANCES = [("float32", 1e-5), ("bfloat16", 0.05)]
if BACKEND != "jax":  # which has float64 only if it is switched on for the whole process
    TOLERANCES.append(("float64", 1e-12))


@pytest.mark.parametrize("dtype,tolerance", TOLERANCES)
def test_layer_norm(rng, dtype, tolerance):
    x, gamma, beta = (rng.standard_normal(shape) for shape in ((2, 3, 8), (8,), (8,)))
    ours = layer_norm(*(ops.cast(a, dtype) for a in (x, gamma, beta)), 1e-6)
    assert keras.backend.standardize_dtype(ours.dtype) == dtype
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    expected = normal * gamma + beta
    np.testing.assert_allclose(numpy(ops.cast(ours, "float64")), expected, atol=tolerance)


@pytest.mark.parametrize("dtype,tolerance", TOLERANCES)
def test_rms_norm(rng, dtype, tolerance):
    x, scale = rng.standard_normal((2, 3, 8)), rng.standard_normal(8)
    ours = rms_norm(*(ops.cast(a, dtype) for a in (x, scale)), 1e-6)
    assert keras.backend.standardize_dtype(ours.dtype) == dtype
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
    np.testing.assert_allclose(numpy(ops.cast(ours, "float64")), expected, atol=tolerance)
