"""Compilation ahead of time is PyTorch's."""

import keras
import pytest

from keras_transformer.backend import BACKEND, packages


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch's has its own tests")
def test_backends_that_always_compile(tmp_path):
    with pytest.raises(ValueError, match=f"KERAS_BACKEND must be 'torch', got '{BACKEND}'"):
        packages(keras.Sequential(), tmp_path)
