"""Number types that this machine can compute in."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import keras
from keras import ops

from keras_transformer.backend.compilation import BACKEND

if BACKEND == "torch":
    from keras_transformer.backend.torch import matmul


def usable_precision(precision: str) -> str:
    """Return `precision`, or "float32" with a warning if this machine cannot compute in it.

    The test is a small matrix product. On processors without bfloat16 units PyTorch emulates it at
    a tenth of float32's speed or less, and oneDNN rejects it: that counts as not supported.

    Args:
        precision: A dtype or a Keras dtype policy, such as "bfloat16" or "mixed_bfloat16".
    """
    dtype = precision.removeprefix("mixed_")
    if dtype not in ("bfloat16", "float16") or _computes_in(dtype):
        return precision
    warnings.warn(
        f"precision is float32 in place of {precision}: this machine does not compute in {dtype}",
        stacklevel=2,
    )
    return "float32"


def at_least_float32(x: Any) -> Any:
    """Return x in float32, or unchanged if it is in float64."""
    # Not `keras.backend.result_type`: in Keras 3.15 that of float64 and float32 is float32.
    return x if keras.backend.standardize_dtype(x.dtype) == "float64" else ops.cast(x, "float32")


@functools.cache
def _computes_in(dtype: str) -> bool:
    try:
        x = ops.ones((2, 2), dtype)
        ops.matmul(x, x)
    except Exception:  # each backend raises its own type
        return False
    on_cpu = BACKEND == "torch" and x.device.type == "cpu"
    return not on_cpu or dtype != "bfloat16" or matmul.computes_bfloat16()
