"""Products with matrices in blocks on JAX; see `backend.block_format`."""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from keras_transformer.backend.block_format import BLOCK, MIDDLES

_FEW_ROWS = 4  # with more rows, it is faster to convert parts of the matrix to floats
_AT_ONCE = 512, 256, 128, 64  # outputs per part: the first that divides the number of outputs


def linear(x_ND: Any, levels: Any, scales: Any, bits: int) -> Any:
    """Kernel of `backend.block_linear`.

    In a product with one row, XLA computes the weights inside the sum and never stores them; with
    several rows it would store them all. So up to `_FEW_ROWS` rows are multiplied one by one, and
    more rows by parts of the matrix.
    """
    # Without this barrier XLA computes all weights once, in front of the loop over tokens.
    x_ND, levels, scales = lax.optimization_barrier(
        (x_ND, jnp.asarray(levels), jnp.asarray(scales))
    )
    num_rows = x_ND.shape[0]  # not an integer while shapes are inferred
    if isinstance(num_rows, int) and num_rows <= _FEW_ROWS:
        return jnp.concatenate([_one_row(row[None], levels, scales, bits) for row in x_ND])
    count = len(levels)
    size = next(x for x in _AT_ONCE if count % x == 0)
    parts = levels.reshape(-1, size, levels.shape[1])
    pairs = scales.reshape(len(scales), -1, size, 2).transpose(1, 0, 2, 3)

    def multiply(part):
        weights = [floats(part[0], part[1], bits, i, x_ND.dtype) for i in range(8 // bits)]
        return x_ND @ lax.optimization_barrier(jnp.concatenate(weights, axis=1)).T

    y_PNS = lax.map(multiply, (parts, pairs))
    return y_PNS.transpose(1, 0, 2).reshape(num_rows, count)


def _one_row(x_1D, levels, scales, bits):
    """Return x W^T (1, F): the sum over the halves of the inputs, each its own loop."""
    parts = jnp.split(x_1D, 8 // bits, axis=1)
    sums = [x @ floats(levels, scales, bits, i, x.dtype).T for i, x in enumerate(parts)]
    return sum(jax.lax.optimization_barrier(sums))


def floats(levels: Any, scales: Any, bits: int, part: int, dtype: Any) -> Any:
    """Return the weights (F, D bits / 8) of 8-bit levels, or of a half of 4-bit levels."""
    if bits == 4:
        levels = levels >> 4 if part else levels & 15
    number, factor = MIDDLES[bits]
    size = len(scales) * bits // 8
    pairs = scales[part * size : (part + 1) * size].astype(dtype)
    scale, center = (pairs[..., i].T[..., None] for i in (0, 1))
    blocks = levels.astype(dtype).reshape(len(levels), -1, BLOCK)
    return ((blocks - number) * scale + center * factor).reshape(len(levels), -1)
