"""Layers that store their matrix in blocks of 4 or 8 bits; see `backend.block_format`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import (
    block_linear,
    block_rows,
    levels_in_memory,
    levels_of,
    levels_shape,
)
from keras_transformer.backend.block_format import (
    BLOCK,
    COLUMNS,
    MIDDLES,
    ROWS,
    plain_levels,
    stored_levels,
)
from keras_transformer.config import BLOCKS

_AT_ONCE = 1 << 20  # weights that are rounded at a time
_NEAR = 1e-3  # largest difference from a whole number of steps in an evenly spaced block
_SAMPLE = 64  # blocks to examine first; if none is evenly spaced, the others are not examined


class _Mode(threading.local):
    name: str | None = None


_mode = _Mode()


@contextlib.contextmanager
def in_blocks(mode: str | None) -> Iterator[None]:
    """Make new dense layers and token tables keep their matrices in blocks in the context.

    Args:
        mode: One of `BLOCKS`; None: no change.
    """
    before, _mode.name = _mode.name, mode or _mode.name
    try:
        yield
    finally:
        _mode.name = before


def block_mode() -> str | None:
    """Return the mode of the surrounding `in_blocks`; None: new layers have matrices of floats."""
    return _mode.name


def to_blocks(matrix_FD: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels (F, D) uint8 of a matrix, and its scales and centers (D / 32, F, 2).

    If the numbers of a block are evenly spaced, as in a quantized GGUF file, they change only by
    the rounding of scale and center to float16.

    Args:
        matrix_FD: The matrix; D is a multiple of 32.
        bits: 4 or 8.
    """
    number, factor = MIDDLES[bits]
    step = max(1, _AT_ONCE // matrix_FD.shape[1])
    parts = [matrix_FD[i : i + step] for i in range(0, len(matrix_FD), step)]
    levels, scales = np.empty(matrix_FD.shape, "uint8"), []
    for i, part in enumerate(parts):
        x_NE = np.ascontiguousarray(part, "float32").reshape(-1, BLOCK)
        # More levels are below the middle than above it. A block whose number of the largest
        # magnitude is positive is negated, and gets a negative scale.
        sign_N = np.where(x_NE.max(1) > -x_NE.min(1), -1, 1).astype("float32")
        x_NE = x_NE * sign_N[:, None]
        unit, lowest = _units(x_NE, bits), x_NE.min(1)
        count = np.rint(np.ptp(x_NE, axis=1) / np.where(unit, unit, 1))
        # Level of the lowest number. This choice makes the center smallest, and most exact.
        first = np.rint(number + lowest / np.where(unit, unit, 1))
        first = np.clip(first, 0, 2**bits - 1 - count)
        center = (lowest - unit * (first - number)) / factor
        pairs = np.stack([unit, center], axis=-1).astype("float16")
        unit, center = pairs.T[..., None].astype("float32")
        exact = (x_NE - factor * center) / np.where(unit, unit, 1) + number
        rounded = np.clip(np.rint(exact), 0, 2**bits - 1).astype("uint8")
        levels[i * step : i * step + len(part)] = rounded.reshape(part.shape)
        pairs *= sign_N[:, None].astype("float16")
        scales.append(pairs.reshape(len(part), -1, 2).transpose(1, 0, 2))
    return levels, np.concatenate(scales, axis=1)


def from_blocks(levels_FD: np.ndarray, scales_BF2: np.ndarray, bits: int) -> np.ndarray:
    """Return a matrix (F, D) in float32, the inverse of `to_blocks`."""
    number, factor = MIDDLES[bits]
    pairs = scales_BF2.astype("float32").transpose(1, 0, 2)
    levels_FBE = levels_FD.reshape(len(levels_FD), -1, BLOCK).astype("float32")
    blocks = (levels_FBE - number) * pairs[..., :1] + factor * pairs[..., 1:]
    return blocks.reshape(levels_FD.shape)


def _units(x_NE, bits):
    """Return the distance between neighbouring levels, for each block."""
    sample = np.linspace(0, len(x_NE) - 1, min(_SAMPLE, len(x_NE))).astype(int)
    if _spacing(x_NE[sample], bits).any():
        spacing = _spacing(x_NE, bits)
    else:  # weights that were never rounded
        spacing = np.zeros(len(x_NE), "float32")
    return np.where(spacing, spacing, np.ptp(x_NE, axis=1) / (2**bits - 1))


def _spacing(x_NE, bits):
    """Return the step between the numbers of each block if they are evenly spaced, else 0."""
    spread, largest = np.ptp(x_NE, axis=1), np.abs(x_NE).max(1)
    # The steps of Q8_0 and Q4_0, then the spread divided into n steps.
    units = [largest / 127, largest / 8] if bits == 8 else [largest / 8]
    units += [spread / n for n in range(31 if bits == 8 else 15, 0, -1)]
    spacing = np.zeros_like(spread)
    for unit in units:
        rows = np.flatnonzero((spacing == 0) & (spread > 0) & (spread < unit * (2**bits - 0.5)))
        x_RE = x_NE[rows]
        steps = (x_RE - x_RE.min(1, keepdims=True)) / unit[rows, None]
        rows = rows[(np.abs(steps - np.rint(steps)) < _NEAR).all(1)]
        spacing[rows] = unit[rows]
    return spacing


class WithBlocks:
    """A mixin for layers of Keras with a matrix, which can be kept in blocks.

    A layer that is built inside `in_blocks` has no matrix of floats, but `levels` and `scales`. If
    the number of its inputs is not a multiple of 64, it is an ordinary layer.
    """

    bits = 0  # of a level; 0: the matrix is in floats
    least_bits = 4
    is_table = False  # whether the matrix is (F, D), not (D, F)
    matrix_name: str
    levels: Any
    scales: Any

    # Attributes of the Keras layer that this is mixed into.
    add_weight: Any
    path: str
    built: bool
    bias: Any

    def build_blocks(self, num_inputs: int, num_outputs: int) -> bool:
        """Add the weights of the blocks, if the layer is to have them; return whether it has."""
        if _mode.name is None or num_inputs % COLUMNS:
            return False
        self.bits = max(BLOCKS[_mode.name], self.least_bits)
        self.num_outputs = num_outputs
        rows = -(-num_outputs // ROWS) * ROWS
        zeros = dict(initializer="zeros", trainable=False, autocast=False)
        shape = levels_shape(rows, num_inputs, self.bits)
        self.levels = self.add_weight(shape=shape, dtype="uint8", name="levels", **zeros)
        pairs = num_inputs // BLOCK, rows, 2
        self.scales = self.add_weight(shape=pairs, dtype="float16", name="scales", **zeros)
        setattr(self, self.matrix_name, None)
        return True

    def _kind(self):
        return f"q{self.bits}" if self.bits else super().quantization_mode  # type: ignore[misc]  # Keras's

    quantization_mode: Any = property(_kind, doc='"q4" or "q8"; without blocks, Keras\'s mode.')

    @property
    def matrix_path(self) -> str:
        """The path that the matrix has in a model of floats."""
        return f"{self.path}/{self.matrix_name.removeprefix('_')}"

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """The shape that the matrix has in a model of floats."""
        shape = self.num_outputs, self.scales.shape[0] * BLOCK
        return shape if self.is_table else shape[::-1]

    def set_matrix(self, matrix: Any) -> None:
        """Round a matrix of floats to blocks, and assign them."""
        matrix = np.asarray(ops.convert_to_numpy(matrix), "float32")
        matrix_FD = matrix if self.is_table else matrix.T
        levels, scales = to_blocks(matrix_FD, self.bits)
        self._set(levels, scales)

    def float_matrix(self) -> np.ndarray:
        """Return the matrix of the blocks in float32."""
        scales = ops.convert_to_numpy(self.scales)
        matrix_FD = from_blocks(levels_of(self.levels, self.bits), scales, self.bits)
        matrix_FD = matrix_FD[: self.num_outputs]
        return matrix_FD if self.is_table else matrix_FD.T

    def project(self, x: Any) -> Any:
        """Return the product (..., F) with the blocks, without bias."""
        return block_linear(x, self.levels, self.scales, self.bits)[..., : self.num_outputs]

    def float_rows(self, ids: Any, dtype: str) -> Any:
        """Return the weights (..., D) of the outputs `ids` (...)."""
        return block_rows(ids, self.levels, self.scales, self.bits, dtype)

    def _set(self, levels_FD, scales):
        missing = self.scales.shape[1] - len(levels_FD)
        levels_FD = np.pad(levels_FD, ((0, missing), (0, 0)))
        self.levels.assign(levels_in_memory(levels_FD, self.bits))
        self.scales.assign(np.pad(scales, ((0, 0), (0, missing), (0, 0))))

    def save_own_variables(self, store: Any) -> None:
        """Save the weights; blocks are saved as `levels4` or `levels8`, `scales` and `bias`."""
        if not self.bits:
            super().save_own_variables(store)  # type: ignore[misc]  # Keras's
            return
        count = self.num_outputs
        levels = levels_of(self.levels, self.bits)[:count]
        store[f"levels{self.bits}"] = stored_levels(levels, self.bits)
        store["scales"] = ops.convert_to_numpy(self.scales)[:, :count]
        if getattr(self, "bias", None) is not None:
            store["bias"] = ops.convert_to_numpy(self.bias)

    def load_own_variables(self, store: Any) -> None:
        """Load what `save_own_variables` saved."""
        if not self.bits:
            super().load_own_variables(store)  # type: ignore[misc]  # Keras's
            return
        levels = np.asarray(store[f"levels{self.bits}"])
        self._set(plain_levels(levels, self.bits), np.asarray(store["scales"]))
        if getattr(self, "bias", None) is not None:
            self.bias.assign(store["bias"])
