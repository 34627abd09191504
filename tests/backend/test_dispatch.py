"""Where a backend's own kernels may compute: on real numbers, outside of graphs and scopes."""

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import BACKEND, portable, training_step
from keras_transformer.backend.dispatch import uses_tensorflow_kernels, uses_torch_kernels


def test_by_kernel_on_pytorch_alone():
    x = ops.convert_to_tensor(np.ones((2, 3), "float32"))
    assert uses_torch_kernels(x) == (BACKEND == "torch")
    with portable():
        assert not uses_torch_kernels(x)
    with keras.StatelessScope():
        assert not uses_torch_kernels(x)


def test_by_loop_in_a_training_step_of_tensorflow():
    assert not uses_tensorflow_kernels()
    with training_step():
        assert uses_tensorflow_kernels() == (BACKEND == "tensorflow")
    assert not uses_tensorflow_kernels()
