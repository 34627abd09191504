"""The GPUs that a process sees, and arrays that stay there."""

from pathlib import Path

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import constant, count_gpus, devices, private
from tests.backends import BACKEND


def test_all_gpus_of_the_machine_are_counted_or_none():
    there = len(list(Path("/dev").glob("nvidia[0-9]*")))
    assert count_gpus() in (0, there)  # 0: they are hidden, or the backend was built without them


def test_a_constant_is_a_tensor_of_a_part():
    array = np.arange(12.0, dtype="float32").reshape(6, 2)
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(array)), array)
    np.testing.assert_array_equal(ops.convert_to_numpy(constant(array, slice(2, 4))), array[2:4])


@pytest.mark.skipif(BACKEND != "torch", reason="other backends keep constants themselves")
def test_an_accelerator_gets_a_constant_once(monkeypatch):
    monkeypatch.setattr(private, "device", lambda: "cpu:0")  # not "cpu"
    array = np.arange(12.0, dtype="float32")
    first, again = constant(array), constant(array, slice(3, 5))
    assert again.data_ptr() == first[3:].data_ptr() != array[3:].ctypes.data
    assert again.tolist() == [3.0, 4.0]
    kept = len(devices._kept)
    del array
    assert len(devices._kept) == kept - 1
