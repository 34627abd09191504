"""Matrix products for layers, and table lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_transformer.backend import private
from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.dispatch import uses_torch_kernels

if BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import matrix_products
elif BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import matrix_products as tensorflow_products


def linear(
    x: Any,
    kernel: Any,
    bias: Any = None,
    activation: Callable | None = None,
    transposed: bool = False,
) -> Any:
    """Return activation(x @ kernel + bias) over the last axis.

    Args:
        x: Inputs (..., D).
        kernel: Variable or tensor (D, F), or (F, D) if `transposed`. On PyTorch without gradients,
            the fastest form of a variable is cached until the variable changes.
        bias: Bias (F,), or None.
        activation: Activation function, or None.
        transposed: Whether the kernel has the shape (F, D).
    """
    if uses_torch_kernels(x):
        x, activation = matrix_products.linear(x, kernel, bias, activation, transposed)
    elif BACKEND == "tensorflow":
        x = tensorflow_products.linear(x, kernel, bias, transposed)
    else:
        kernel = ops.cast(kernel, x.dtype)  # for callers without an autocast scope
        kernel = ops.transpose(kernel) if transposed else kernel
        x = matrix_products.plain_linear(x, kernel) if BACKEND == "torch" else ops.matmul(x, kernel)
        if bias is not None:
            x = x + bias
    return x if activation is None else activation(x)


def int8_linear(x: Any, kernel: Any, scale: Any, bias: Any = None, transposed: bool = False) -> Any:
    """Return x @ kernel / scale + bias over the last axis, with each row of x rounded to 8 bits.

    For Keras layers that are quantized to "int8". Call it only if `has_int8_linear(x)`.

    Args:
        x: Inputs (..., D).
        kernel: Variable (D, F) int8, or (F, D) if `transposed`.
        scale: Variable (F,), the factor that the kernel was multiplied by.
        bias: Variable (F,), or None.
        transposed: Whether the kernel has the shape (F, D).
    """
    return matrix_products.int8_linear(x, kernel, scale, bias, transposed)


def has_int8_linear(x: Any) -> bool:
    """Return whether `int8_linear` accepts x: PyTorch on a CPU with 8-bit products, no gradients.

    In place of it, Keras 3.15 multiplies 32-bit integers, which takes five times as long as floats.
    """
    is_there = (
        uses_torch_kernels(x) and private.INT_MM is not None and matrix_products.multiplies_int8()
    )
    return is_there and x.device.type == "cpu" and not torch.is_grad_enabled()


def lookup(table: Any, ids: Any) -> Any:
    """Return the rows (..., D) of the variable `table` (V, D) at `ids` (...).

    Their dtype is that of the table; in mixed precision without PyTorch's kernels, it is the
    compute dtype.
    """
    if BACKEND == "torch":
        return matrix_products.lookup(table, ids, itself=uses_torch_kernels(ids))
    return ops.take(table, ids, axis=0)
