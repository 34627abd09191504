"""Products with matrices in blocks, beside those with the floats that the blocks are."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend.block_format import MIDDLES
from keras_transformer.backend.block_linear import (
    block_linear,
    block_rows,
    levels_in_memory,
    levels_of,
    levels_shape,
)
from tests.backends import cases


def made(rng, bits, outputs=192, inputs=128):
    """Levels and scales as variables, and the matrix."""
    levels = rng.integers(0, 2**bits, (outputs, inputs)).astype("uint8")
    scales = rng.standard_normal((inputs // 32, outputs, 2)).astype("float16")
    number, factor = MIDDLES[bits]
    pairs = scales.astype("float32").transpose(1, 0, 2)
    blocks = levels.reshape(outputs, -1, 32).astype("float32") - number
    matrix = (blocks * pairs[..., :1] + factor * pairs[..., 1:]).reshape(outputs, inputs)
    stored = levels_in_memory(levels, bits)
    assert stored.shape == levels_shape(outputs, inputs, bits)
    options = dict(trainable=False, autocast=False)
    variables = (
        keras.Variable(stored, dtype="uint8", **options),
        keras.Variable(scales, dtype="float16", **options),
    )
    np.testing.assert_array_equal(levels_of(variables[0], bits), levels)
    return variables, matrix


@pytest.mark.parametrize("shape", cases([(1,), (2, 1), (5,), (2, 3, 7), (0,)], (2, 1)))
@pytest.mark.parametrize("bits", [4, 8])
def test_products(shape, bits, rng):
    variables, matrix = made(rng, bits)
    x = rng.standard_normal((*shape, 128)).astype("float32")
    result = ops.convert_to_numpy(block_linear(ops.convert_to_tensor(x), *variables, bits))
    np.testing.assert_allclose(result, x @ matrix.T, rtol=1e-4, atol=1e-4 * np.abs(matrix).max())


@pytest.mark.parametrize("bits", [4, 8])
def test_rows(bits, rng):
    variables, matrix = made(rng, bits)
    ids = np.array([[0, 63, 64], [191, 31, 32]], "int32")
    rows = block_rows(ops.convert_to_tensor(ids), *variables, bits, "float32")
    np.testing.assert_allclose(ops.convert_to_numpy(rows), matrix[ids], rtol=1e-5, atol=1e-5)
