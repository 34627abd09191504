"""x W + b on TensorFlow, for any axes and sizes that a graph does not know."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.backend import linear


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("known", [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 1, 4), (0, 3, 4), (2, 0, 4), (5, 4), (4,)])
def test_of_all_shapes(rng, shape, known, transposed):
    x, kernel, bias = (rng.standard_normal(s).astype("float32") for s in (shape, (4, 5), (5,)))
    given = [size if axis in known else None for axis, size in enumerate(shape[:-1])]

    @tf.function(input_signature=[tf.TensorSpec([*given, 4])], autograph=False)
    def compute(x):
        return linear(x, kernel.T if transposed else kernel, bias, transposed=transposed)

    np.testing.assert_allclose(compute(x), x @ kernel + bias, atol=1e-5)
    assert compute.get_concrete_function().output_shapes.as_list() == [*given, 5]


def test_parameters_take_the_dtype_of_the_inputs():
    y = linear(tf.ones((2, 4), "bfloat16"), tf.ones((4, 5)), tf.ones(5))
    assert y.dtype == "bfloat16" and np.all(tf.cast(y, "float32") == 5)
