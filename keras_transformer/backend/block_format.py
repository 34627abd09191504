"""Matrices of 4 or 8 bits, with a scale and a center for each block of 32 inputs of an output.

A level has one nibble n_0 or two, n_0 + 16 n_1. A weight is the sum over the nibbles of
16^i ((n_i - 8) scale + center): scale (level - 8) + center with 4 bits, and
scale (level - 136) + 17 center with 8. Q4_0, Q4_1 and Q8_0 of GGUF files are such blocks.

In files, levels of 8 bits are (F, D) uint8, and those of 4 bits (F, D / 2), where the low nibbles
are the first half of the inputs. In memory they have this form, too, or, on PyTorch's CPU, that of
its product. Scales and centers are (D / 32, F, 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

BLOCK = 32  # inputs
ROWS = 64  # divides the number of outputs
COLUMNS = 2 * BLOCK  # divides the number of inputs: each half consists of whole blocks
# By bits: the level of the weight `factor * center`, and the factor.
MIDDLES = {4: (8, 1), 8: (136, 17)}


def stored_levels(levels_FD: np.ndarray, bits: int) -> np.ndarray:
    """Return levels (F, D) uint8 in the form of files."""
    if bits == 8:
        return levels_FD
    low, high = np.split(levels_FD, 2, axis=1)
    return low | high << 4


def plain_levels(stored: Any, bits: int) -> Any:
    """Return the levels (F, D) uint8, made from the form of files; arrays or tensors."""
    if bits == 8:
        return stored
    if isinstance(stored, np.ndarray):
        return np.concatenate([stored & 15, stored >> 4], axis=1)
    return ops.concatenate([ops.bitwise_and(stored, 15), ops.right_shift(stored, 4)], axis=1)
