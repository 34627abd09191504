"""Matrices of 4 or 8 bits, with a scale and a center for each block of 32 inputs of an output.

The level of a weight is the integer that is stored for it: one nibble n_0 (4 bits), or two,
n_0 + 16 n_1 (8 bits). The weight is the sum over the nibbles of 16^i ((n_i - 8) scale + center):
scale (level - 8) + center with 4 bits, and scale (level - 136) + 17 center with 8. Blocks of GGUF's
types Q4_0, Q4_1 and Q8_0 have this form.

In files, levels of 8 bits are (F, D) uint8, and those of 4 bits (F, D / 2), where the low nibbles
are the first half of the inputs. In memory they have the same form, or with PyTorch on a CPU the
order of its 4-bit product (`torch.block_products`). Scales and centers are (D / 32, F, 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

BLOCK = 32  # inputs
ROWS = 64  # outputs are padded to a multiple of this
COLUMNS = 2 * BLOCK  # divides the number of inputs: each half consists of whole blocks
# By number of bits: the level whose weight is `factor * center`, and the factor.
MIDDLES = {4: (8, 1), 8: (136, 17)}


def stored_levels(levels_FD: np.ndarray, bits: int) -> np.ndarray:
    """Convert levels (F, D) uint8 to the form of files."""
    if bits == 8:
        return levels_FD
    low, high = np.split(levels_FD, 2, axis=1)
    return low | high << 4


def plain_levels(stored: Any, bits: int) -> Any:
    """Return the levels (F, D) uint8 of an array or a tensor in the form of files."""
    if bits == 8:
        return stored
    if isinstance(stored, np.ndarray):
        return np.concatenate([stored & 15, stored >> 4], axis=1)
    return ops.concatenate([ops.bitwise_and(stored, 15), ops.right_shift(stored, 4)], axis=1)
