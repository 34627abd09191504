"""Products with matrices in blocks on PyTorch; see `backend.block_format`.

On a CPU, PyTorch has a product of bfloat16 by 4-bit blocks, which converts them in registers. For
32 rows or fewer it takes less time than a float32 product, for one row a fourth. Levels are kept
in the order that it requires: in each tile of 32 or 64 rows, a byte holds the nibbles of two rows.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from keras_transformer.backend import private
from keras_transformer.backend.accelerators import count_gpus
from keras_transformer.backend.block_format import BLOCK, MIDDLES, ROWS
from keras_transformer.backend.dispatch import uses_torch_kernels
from keras_transformer.backend.torch.matrix_products import in_dtype, tensor_of

_FEW_ROWS = 32  # maximum number of rows of x for which the 4-bit product is used
_AT_ONCE = 1 << 19  # weights that are converted to floats at a time: they stay in cache


@functools.cache
def is_packed() -> bool:
    """Return whether levels are kept in the order of PyTorch's 4-bit product.

    False with a GPU, and if this PyTorch or this processor does not have the product.
    """
    known = None not in (private.INT4_MM, private.INT4_PACK)
    return known and not count_gpus() and _order() is not None


@functools.cache
def _order():
    """Return the row of a tile that each nibble belongs to, low nibbles first.

    None if the product is missing or orders levels in another way.
    """
    numbers = torch.arange(ROWS, dtype=torch.int32)[:, None].repeat(1, BLOCK)
    try:
        low, high = (private.INT4_PACK(x, 1).flatten() for x in (numbers & 15, numbers >> 4))
    except RuntimeError:
        return None
    rows = torch.stack([low & 15, low >> 4]) + 16 * torch.stack([high & 15, high >> 4])
    for size in (ROWS, ROWS // 2):  # depends on the width of the processor's vectors
        tiles = rows.view(2, ROWS // size, BLOCK, size // 2) % size
        order = tiles[:, 0, 0].flatten().long()
        expected = tiles[:, :1, :1].expand_as(tiles)
        if torch.equal(tiles, expected) and torch.equal(order.sort()[0], torch.arange(size)):
            return order
    return None


def packed(levels_FD: np.ndarray, bits: int) -> np.ndarray:
    """Return levels in the order of the product, (F bits / 4, D / 2)."""
    plane = np.empty((bits // 4, len(levels_FD), levels_FD.shape[1] // 2), "uint8")
    for start in range(0, len(levels_FD), step := 1024):  # `some` has 32 bits for each level
        some = torch.from_numpy(np.ascontiguousarray(levels_FD[start : start + step])).int()
        for i in range(len(plane)):
            plane[i, start : start + step] = private.INT4_PACK(some >> 4 * i & 15, 1).numpy()
    return plane.reshape(-1, plane.shape[-1])


def unpacked(levels: Any, bits: int) -> np.ndarray:
    """Return the levels (F, D) uint8 of levels in the order of the product."""
    tiles = _tiles(levels, bits)
    inverse = torch.argsort(_order())
    levels_TDR = _of_tiles(tiles)[..., inverse]
    return levels_TDR.transpose(1, 2).reshape(-1, tiles.shape[2]).numpy()


def rows(levels: Any, ids: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the levels (N, D) of some rows, uint8."""
    tiles, order = _tiles(levels, bits), _order()
    place = torch.argsort(order)[ids % len(order)]
    half = len(order) // 2
    bytes_NPD = tiles[:, ids // len(order), :, place % half]
    nibbles = torch.where((place < half)[:, None, None], bytes_NPD & 15, bytes_NPD >> 4)
    return nibbles[:, 0] if bits == 4 else nibbles[:, 0] + 16 * nibbles[:, 1]


def linear(x_ND: torch.Tensor, levels: Any, scales: Any, bits: int) -> torch.Tensor:
    """Kernel of `backend.block_linear`."""
    if x_ND.is_meta:
        return x_ND.new_empty((len(x_ND), scales.shape[1]))
    if not is_packed():
        return _from_files(x_ND, tensor_of(levels), tensor_of(scales), bits)
    is_few = uses_torch_kernels(x_ND) and len(x_ND) <= _FEW_ROWS
    if not is_few or torch.is_grad_enabled():
        return _dequantized(x_ND, _tiles(levels, bits), tensor_of(scales), bits)
    planes = tensor_of(levels).view(bits // 4, -1, x_ND.shape[1] // 2)
    pairs, x = in_dtype(scales, torch.bfloat16), x_ND.bfloat16()
    y_NF = private.INT4_MM(x, planes[0], BLOCK, pairs)
    if bits == 8:
        y_NF = torch.add(y_NF.float(), private.INT4_MM(x, planes[1], BLOCK, pairs), alpha=16)
    return y_NF.to(x_ND.dtype)


def _tiles(levels, bits):
    """Return levels, two nibbles in a byte, in the shape (planes, tiles, D, rows / 2)."""
    levels = tensor_of(levels)
    return levels.view(bits // 4, -1, 2 * levels.shape[1], len(_order()) // 2)


def _of_tiles(tiles):
    """Return the levels (tiles, D, rows) of tiles, with rows in their order."""
    nibbles = torch.cat([tiles & 15, tiles >> 4], dim=-1)
    return nibbles[0] if len(nibbles) == 1 else nibbles[0] + 16 * nibbles[1]


def _dequantized(x_ND, tiles, scales, bits):
    """Return x W^T, converting a few tiles of W to floats at a time."""
    order, dtype = _order(), x_ND.dtype
    _, count, width, _ = tiles.shape
    pairs = scales.view(-1, count, len(order), 2)[:, :, order].to(dtype).transpose(0, 1)
    number, factor = MIDDLES[bits]
    step, results = max(1, _AT_ONCE // (width * len(order))), []
    for start in range(0, count, step):
        levels = _of_tiles(tiles[:, start : start + step]).to(dtype)
        some = pairs[start : start + step].unsqueeze(2)
        weights = levels.view(len(some), -1, BLOCK, len(order)).sub_(number).mul_(some[..., 0])
        weights = weights.add_(some[..., 1] * factor).view(len(some), width, len(order))
        results.append(torch.matmul(x_ND, weights))
    y_TNR = torch.cat(results)[..., torch.argsort(order)]
    return y_TNR.transpose(0, 1).flatten(1)


def _from_files(x_ND, levels, scales, bits):
    """Return x W^T with levels in the form of files, on a GPU or if the product is missing."""
    levels = torch.cat([levels & 15, levels >> 4], dim=1) if bits == 4 else levels
    number, factor = MIDDLES[bits]
    pairs = scales.to(x_ND.dtype).transpose(0, 1).unsqueeze(2)
    weights = levels.to(x_ND.dtype).view(len(levels), -1, BLOCK) - number
    weights = weights * pairs[..., 0] + pairs[..., 1] * factor
    return torch.nn.functional.linear(x_ND, weights.view(len(levels), -1))
