"""PyTorch's own product of 4 bits, and the form without it."""

import numpy as np
import pytest
import torch

from keras_transformer.backend import private
from keras_transformer.backend.block_linear import block_linear, levels_shape
from keras_transformer.backend.torch import block_products
from tests.backend.test_block_linear import made


@pytest.mark.skipif(not block_products.is_packed(), reason="of a CPU")
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 2, 32, 33])
def test_few_rows_without_gradients_are_rounded_to_bfloat16(rows, bits, rng):
    variables, matrix = made(rng, bits)
    x = rng.standard_normal((rows, 128)).astype("float32")
    with torch.no_grad():
        result = block_linear(torch.tensor(x), *variables, bits).numpy()
    error = np.abs(result - x @ matrix.T).max() / np.abs(matrix).max()
    assert error < 1e-4 if rows > 32 else 1e-4 < error < 0.2


@pytest.mark.parametrize("bits", [4, 8])
def test_without_the_product(bits, rng, monkeypatch):
    block_products.is_packed.cache_clear()
    monkeypatch.setattr(private, "INT4_MM", None)
    assert levels_shape(192, 128, bits) == (192, 128 * bits // 8)
    variables, matrix = made(rng, bits)
    x = rng.standard_normal((2, 128)).astype("float32")
    result = block_linear(torch.tensor(x), *variables, bits).numpy()
    block_products.is_packed.cache_clear()
    np.testing.assert_allclose(result, x @ matrix.T, rtol=1e-4, atol=1e-4 * np.abs(matrix).max())
