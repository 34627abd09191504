"""x W + b and its activation against the plain formula."""

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import (
    linear,
)

numpy = ops.convert_to_numpy


def test_linear(rng):
    x, kernel, bias = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 4), (4, 5), (5,)))
    plain = x @ kernel + bias
    x = ops.convert_to_tensor(x)
    np.testing.assert_allclose(numpy(linear(x, kernel, bias)), plain, atol=1e-5)
    np.testing.assert_allclose(numpy(linear(x, kernel, None)), plain - bias, atol=1e-5)
    for name, function in (("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh)):
        ours = linear(x, kernel, bias, keras.activations.get(name))
        np.testing.assert_allclose(numpy(ours), function(plain), atol=1e-5)
