"""Gradients beside a running model."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import BACKEND, gradients


def test_gradients_by_hand():
    used, unused = keras.Variable([3.0, -1.0]), keras.Variable([2.0])

    def function():
        return ops.sum(ops.square(used)), "anything"

    if BACKEND == "jax":
        with pytest.raises(NotImplementedError, match="jax.grad"):
            gradients(function, [used])
        return
    for _ in range(2):  # nothing of the first call is added to the second
        result, found = gradients(function, [used, unused])
        assert result == "anything" and found[1] is None
        np.testing.assert_array_equal(ops.convert_to_numpy(found[0]), [6.0, -2.0])
