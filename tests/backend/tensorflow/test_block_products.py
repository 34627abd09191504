"""Products with blocks in a graph that does not know the number of rows."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.backend.block_linear import block_linear
from tests.backend.test_block_linear import made


@pytest.mark.parametrize("bits", [4, 8])
def test_any_number_of_rows(bits, rng):
    variables, matrix = made(rng, bits)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 128])], autograph=False)
    def compute(x):
        return block_linear(x, *variables, bits)

    for shape in ((1, 1), (2, 3)):
        x = rng.standard_normal((*shape, 128)).astype("float32")
        atol = 1e-4 * np.abs(matrix).max()
        np.testing.assert_allclose(compute(x), x @ matrix.T, rtol=1e-4, atol=atol)
