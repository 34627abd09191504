"""The GPUs that a process sees, and arrays that stay there."""

from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import accelerators, constant, count_gpus, private, zeros
from tests.backends import BACKEND


def test_all_gpus_of_the_machine_are_counted_or_none():
    there = len(list(Path("/dev").glob("nvidia[0-9]*")))
    assert count_gpus() in (0, there)  # 0: they are hidden, or the backend was built without them


def test_a_constant_is_a_tensor_of_a_part():
    array = np.arange(12.0, dtype="float32").reshape(6, 2)
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(array)), array)
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(array, slice(2, 4))), array[2:4])


def test_zeros_are_not_compiled():
    for dtype in ("float32", "bfloat16", "int8"):
        x = zeros((7, 11), dtype)
        assert keras.backend.standardize_dtype(x.dtype) == dtype and tuple(x.shape) == (7, 11)
        assert not ops.convert_to_numpy(ops.cast(x, "float32")).any()
    if BACKEND == "jax":
        with mock.patch("jax._src.compiler.compile_or_get_cached") as compiled:
            zeros((13, 17), "float32")
        assert not compiled.called


@pytest.mark.skipif(BACKEND != "torch", reason="other backends keep constants themselves")
def test_an_accelerator_gets_a_constant_once(monkeypatch):
    monkeypatch.setattr(private, "device", lambda: "cpu:0")  # not "cpu"
    array = np.arange(12.0, dtype="float32")
    first, again = constant(array), constant(array, slice(3, 5))
    assert again.data_ptr() == first[3:].data_ptr() != array[3:].ctypes.data
    assert again.tolist() == [3.0, 4.0]
    kept = len(accelerators._kept)
    del array
    assert len(accelerators._kept) == kept - 1
