"""Products with matrices in blocks of 4 or 8 bits; `block_format` describes their levels."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import quick
from keras_transformer.backend.block_format import BLOCK, MIDDLES, plain_levels, stored_levels
from keras_transformer.backend.compilation import BACKEND

products: Any = importlib.import_module(f"keras_transformer.backend.{BACKEND}.block_products")


def _is_packed():
    """Return whether levels in memory have another order than in files, see `block_format`."""
    return BACKEND == "torch" and products.is_packed()


def levels_shape(num_outputs: int, num_inputs: int, bits: int) -> tuple[int, int]:
    """Return the shape of a matrix's levels in memory."""
    if _is_packed():
        return num_outputs * bits // 4, num_inputs // 2
    return num_outputs, num_inputs * bits // 8


def levels_in_memory(levels_FD: np.ndarray, bits: int) -> np.ndarray:
    """Convert levels (F, D) uint8 to the form of memory."""
    if _is_packed():
        return products.packed(levels_FD, bits)
    return stored_levels(levels_FD, bits)


def levels_of(variable: Any, bits: int) -> np.ndarray:
    """Return the levels (F, D) uint8 of a variable, which has the form of memory."""
    if _is_packed():
        return products.unpacked(variable, bits)
    return plain_levels(ops.convert_to_numpy(variable), bits)


def block_linear(x: Any, levels: Any, scales: Any, bits: int) -> Any:
    """Return x W^T (..., F) in the dtype of x.

    JAX, and PyTorch on a CPU that has its 4-bit product, never hold all of W in floats.

    Args:
        x: Inputs (..., D).
        levels: Variable with the levels of W (F, D), in the form of memory.
        scales: Variable (D / 32, F, 2): scales and centers.
        bits: Bits of a level, 4 or 8.
    """
    shape = quick.shape(x)
    y_NF = products.linear(quick.reshape(x, (-1, shape[-1])), levels, scales, bits)
    return quick.reshape(y_NF, (*shape[:-1], y_NF.shape[-1]))


def block_rows(ids: Any, levels: Any, scales: Any, bits: int, dtype: str) -> Any:
    """Return the rows (..., D) of W at `ids` (...) in `dtype`.

    The other arguments are those of `block_linear`.
    """
    shape, ids_N = quick.shape(ids), ops.reshape(ids, (-1,))
    scales_NB2 = ops.cast(ops.transpose(ops.take(scales, ids_N, axis=1), (1, 0, 2)), dtype)
    if _is_packed():
        levels_ND = products.rows(levels, ids_N, bits)
    else:
        levels_ND = plain_levels(ops.take(levels, ids_N, axis=0), bits)
    number, factor = MIDDLES[bits]
    width = levels_ND.shape[1]
    levels_NBE = ops.reshape(ops.cast(levels_ND, dtype), (-1, width // BLOCK, BLOCK))
    rows_NBE = (levels_NBE - number) * scales_NB2[..., :1] + factor * scales_NB2[..., 1:]
    return ops.reshape(rows_NBE, (*shape, width))
