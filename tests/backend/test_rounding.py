"""Rounding to bfloat16: to one of the neighbours, and right on average."""

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import stochastically_rounded


def test_is_a_neighbour_and_right_on_average(rng):
    x = (rng.normal(size=(3, 50)) * 10.0 ** rng.integers(-9, 9, (3, 50))).astype("float32")
    x[0, :2] = 0.0, 0.25
    below = (x.view("int32") & -0x10000).view("float32")  # towards zero
    above = ((x.view("int32") & -0x10000) + 0x10000).view("float32")
    rounded = []
    for turn in range(256):
        y = stochastically_rounded(ops.convert_to_tensor(x), turn)
        assert tuple(y.shape) == x.shape
        assert keras.backend.standardize_dtype(y.dtype) == "bfloat16"
        rounded.append(ops.convert_to_numpy(ops.cast(y, "float32")))
        assert ((rounded[-1] == below) | (rounded[-1] == above)).all()
    assert (rounded[0] != rounded[1]).any()
    np.testing.assert_allclose(np.mean(rounded, axis=0), x, rtol=1e-4)
    assert (np.array(rounded)[:, 0, :2] == [0.0, 0.25]).all()
