"""Levels of 8 bits. Whole files are tested in test_litert_file.py."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("TensorFlow writes the files", allow_module_level=True)

from keras_transformer.export.litert_int8 import levels


def test_levels_of_a_row(rng):
    matrix = rng.normal(size=(5, 40)).astype("float32")
    matrix[3] = 0.0
    matrix[4] = rng.integers(-100, 101, size=40) * 0.25
    found, scales = levels(matrix)
    error = np.abs(found * scales[:, None] - matrix).max(axis=1)
    assert (error <= scales / 2 + 1e-6).all() and error[3] == 0 and error[4] < 1e-4
    assert np.abs(found).max() <= 127
