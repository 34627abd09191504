"""Precisions: which 16-bit dtypes this machine supports, and which are as fast as float32."""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any

import keras
from keras import ops

from keras_transformer.backend.accelerators import count_gpus
from keras_transformer.backend.compilation import BACKEND
from keras_transformer.config import require
from keras_transformer.system.processor import processor_features

if BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import matrix_products

VARIABLE = "KERAS_TRANSFORMER_PRECISION"
# Instructions that make products in a 16-bit type faster on a CPU than in float32; one is enough.
# Without them, a product took 3 to 380 times as long as in float32 on PyTorch, and 2 to 5 times as
# long on TensorFlow. JAX converts bfloat16 to float32 and back around each product, which took
# twice as long; but with AMX, training was a sixth faster. JAX has no fast products in float16.
_UNITS = {
    ("torch", "bfloat16"): {"avx512_bf16", "amx_bf16", "bf16"},
    ("torch", "float16"): {"avx512_fp16", "amx_fp16"},
    ("tensorflow", "bfloat16"): {"avx512_bf16", "amx_bf16"},
    ("tensorflow", "float16"): {"avx512_fp16", "amx_fp16"},
    ("jax", "bfloat16"): {"amx_bf16"},
}


def usable_precision(precision: str) -> str:
    """Return `precision`, or "float32" with a warning if this machine is slower in it, or fails.

    `is_fast` says whether it is slower; with `is_strict` this does not count. Whether it fails is
    tried with a small product. Types other than bfloat16 and float16, such as "int8", are returned
    unchanged.

    Args:
        precision: A dtype or a Keras dtype policy, such as "bfloat16" or "mixed_bfloat16".
    """
    dtype = precision.removeprefix("mixed_")
    if dtype not in ("bfloat16", "float16"):
        return precision
    if not (is_fast(dtype) or is_strict()):
        reason = f"is slower in {dtype}; {VARIABLE}=strict insists"
    elif not _computes_in(dtype):
        reason = f"does not compute in {dtype}"
    else:
        return precision
    warnings.warn(
        f"precision is float32 in place of {precision}: this machine {reason}", stacklevel=2
    )
    return "float32"


def is_strict() -> bool:
    """Return whether to keep the requested precision even if float32 is faster.

    The environment variable KERAS_TRANSFORMER_PRECISION decides: "fast", the default, or "strict".
    With "strict", "int8" multiplies in 8 bits, which also rounds the inputs.
    """
    value = os.environ.get(VARIABLE) or "fast"
    require(value in ("fast", "strict"), VARIABLE, value, "'fast' or 'strict'")
    return value == "strict"


def is_fast(dtype: str) -> bool:
    """Return whether products in `dtype`, a 16-bit type, are at least as fast as in float32."""
    if count_gpus():
        return BACKEND != "torch" or dtype != "bfloat16" or _gpu_has_bfloat16()
    return not _UNITS.get((BACKEND, dtype), set()).isdisjoint(processor_features())


def at_least_float32(x: Any) -> Any:
    """Return x in float32, or unchanged if it is in float64."""
    # Not `keras.backend.result_type`: in Keras 3.15 that of float64 and float32 is float32.
    dtype = keras.backend.standardize_dtype(x.dtype)
    is_wide = dtype == "float64" or (dtype == "float32" and ops.is_tensor(x))
    return x if is_wide else ops.cast(x, "float32")


def _gpu_has_bfloat16():
    return torch.cuda.is_bf16_supported(including_emulation=False)


@functools.cache
def _computes_in(dtype: str) -> bool:
    try:
        x = ops.ones((2, 2), dtype)
        ops.matmul(x, x)
    except Exception:  # each backend raises its own type
        return False
    on_cpu = BACKEND == "torch" and x.device.type == "cpu"
    return not on_cpu or dtype != "bfloat16" or matrix_products.computes_bfloat16()
