"""Where a backend's own kernels may compute: on real numbers, outside of graphs and scopes."""

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import BACKEND, portable, training_step
from keras_transformer.backend.dispatch import by_kernel, by_loop


def test_by_kernel_on_pytorch_alone():
    x = ops.convert_to_tensor(np.ones((2, 3), "float32"))
    assert by_kernel(x) == (BACKEND == "torch")
    with portable():
        assert not by_kernel(x)
    with keras.StatelessScope():
        assert not by_kernel(x)


def test_by_loop_in_a_training_step_of_tensorflow():
    assert not by_loop()
    with training_step():
        assert by_loop() == (BACKEND == "tensorflow")
    assert not by_loop()
