"""Which number types this machine computes in."""

from __future__ import annotations

import functools
import warnings

from keras import ops

from keras_transformer.backend.compilation import BACKEND

if BACKEND == "torch":
    from keras_transformer.backend.torch import matmul


def usable_precision(precision: str) -> str:
    """`precision`; or "float32", with a warning, where this machine cannot compute in it.

    A tiny product is tried. PyTorch emulates bfloat16 on processors without units for it, at a
    tenth of float32's speed or less, and oneDNN refuses: there it counts as missing, too.

    Args:
        precision: a type or a Keras dtype policy, such as "bfloat16" or "mixed_bfloat16".
    """
    dtype = precision.removeprefix("mixed_")
    if dtype not in ("bfloat16", "float16") or _computes_in(dtype):
        return precision
    warnings.warn(
        f"precision is float32 in place of {precision}: this machine does not compute in {dtype}",
        stacklevel=2,
    )
    return "float32"


@functools.cache
def _computes_in(dtype: str) -> bool:
    try:
        x = ops.ones((2, 2), dtype)
        ops.matmul(x, x)
    except Exception:  # each backend has its own
        return False
    on_cpu = BACKEND == "torch" and x.device.type == "cpu"
    return not on_cpu or dtype != "bfloat16" or matmul.computes_bfloat16()
