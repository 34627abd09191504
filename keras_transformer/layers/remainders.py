"""Remainders of rounding to 8 bits, kept in four more bits for each quantized weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras import ops

_LARGEST = 7  # four bits hold levels from -7 to 7; 7 stands for half a unit of the 8-bit weight


def pack(rest: np.ndarray) -> np.ndarray:
    """Return numbers in [-0.5, 0.5] rounded to 15 levels, two levels in a byte (uint8)."""
    levels = np.clip(np.rint(rest.reshape(-1) * (2 * _LARGEST)), -_LARGEST, _LARGEST)
    levels = np.pad(levels, (0, levels.size % 2)).astype("int8").astype("uint8") & 15
    return levels[::2] | levels[1::2] << 4


def unpack(packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers (float32) in the result of `pack`."""
    levels = np.stack([packed & 15, packed >> 4], axis=-1).reshape(-1)[: int(np.prod(shape))]
    signed = levels.astype("int8")
    signed[signed > _LARGEST] -= 16
    return (signed.astype("float32") / (2 * _LARGEST)).reshape(shape)


class WithRemainder:
    """A mixin for `keras.layers.Dense` and `Embedding` that keeps the remainder of int8 weights.

    Rounding to eight bits, with one scale per output, changes some translations; rounding to twelve
    bits changes far fewer. Keras's quantized layer computes with the eight bits alone;
    `whole_matrix` returns all twelve.
    """

    remainder: Any = None  # packed by `pack`, or None
    matrix_name: str  # names of the Keras layer's attributes for the matrix and its scale
    scale_name: str
    has_row_scales: bool = False  # whether each row has a scale, not each column

    # Attributes of the Keras layer that this is mixed into.
    add_weight: Any
    quantization_mode: str | None

    def quantize(
        self,
        mode: Any = None,
        type_check: bool = True,
        config: Any = None,
        remainder: bool = False,
    ) -> None:
        """Quantize the layer without Keras's type check, which refuses subclasses of `Dense`.

        Args:
            mode: See `keras.layers.Layer.quantize`.
            type_check: Ignored.
            config: See `keras.layers.Layer.quantize`.
            remainder: Whether to keep the remainder of "int8", too.
        """
        whole = self.whole_matrix() if remainder else None
        super().quantize(mode, type_check=False, config=config)  # type: ignore[misc]  # Keras's
        if whole is None:
            return
        rounded, scale = self._rounded_and_scale()
        packed = pack(whole * scale - rounded)
        self.remainder = self.add_weight(
            name="remainder", shape=packed.shape, initializer="zeros", dtype="uint8",
            trainable=False,
        )  # fmt: skip
        self.remainder.assign(packed)

    def whole_matrix(self) -> np.ndarray:
        """Return the matrix in float32, with its remainder if it is quantized to "int8"."""
        if self.quantization_mode is None:
            return ops.convert_to_numpy(ops.cast(getattr(self, self.matrix_name), "float32"))
        rounded, scale = self._rounded_and_scale()
        if self.remainder is not None:
            rounded = rounded + unpack(ops.convert_to_numpy(self.remainder), rounded.shape)
        return rounded / scale

    @property
    def variable_serialization_spec(self) -> dict[Any, list[str]]:
        """Names of the attributes that Keras saves, by quantization mode."""
        spec = super().variable_serialization_spec  # type: ignore[misc]  # Keras's
        if self.remainder is None:
            return spec
        return {**spec, "int8": [*spec["int8"], "remainder"]}

    def _rounded_and_scale(self):
        """Return the int8 matrix as float32, and its scale, which broadcasts with it."""
        rounded = ops.convert_to_numpy(getattr(self, self.matrix_name)).astype("float32")
        scale = ops.convert_to_numpy(ops.cast(getattr(self, self.scale_name), "float32"))
        return rounded, scale[:, None] if self.has_row_scales else scale
