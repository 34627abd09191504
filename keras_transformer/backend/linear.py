"""Matrix products of layers, and table lookups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_transformer.backend import private
from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.dispatch import by_kernel

if BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import matmul


def linear(
    x: Any,
    kernel: Any,
    bias: Any = None,
    activation: Callable | None = None,
    transposed: bool = False,
) -> Any:
    """activation(x @ kernel + bias) of the last axis.

    Args:
        x: (..., D).
        kernel: (D, F), or (F, D) if `transposed`; a variable or a tensor. On PyTorch, without
            gradients, a variable's fastest form is kept beside it until it changes.
        bias: (F,) or None.
        activation: or None.
        transposed: whether the kernel is.
    """
    if by_kernel(x):
        x, activation = matmul.linear(x, kernel, bias, activation, transposed)
    else:
        kernel = ops.cast(kernel, x.dtype)  # where the caller's scope does not
        x = ops.matmul(x, ops.transpose(kernel) if transposed else kernel)
        if bias is not None:
            x = x + bias
    return x if activation is None else activation(x)


def int8_linear(x: Any, kernel: Any, scale: Any, bias: Any = None, transposed: bool = False) -> Any:
    """x @ kernel / scale + bias of the last axis, x rounded to 8 bits a row, too.

    What Keras's layers compute that are quantized to "int8", where `has_int8_linear` says so.

    Args:
        x: (..., D).
        kernel: (D, F) int8, or (F, D) if `transposed`, a variable.
        scale: (F,), a variable: what the kernel was multiplied by.
        bias: (F,), a variable, or None.
        transposed: whether the kernel is.
    """
    return matmul.int8_linear(x, kernel, scale, bias, transposed)


def has_int8_linear(x: Any) -> bool:
    """Whether `int8_linear` takes x: on PyTorch's CPU without gradients. Keras (3.15) goes by
    32-bit integers there, five times as slow as floats."""
    is_there = by_kernel(x) and private.INT_MM is not None
    return is_there and x.device.type == "cpu" and not torch.is_grad_enabled()


def lookup(table: Any, ids: Any) -> Any:
    """The rows of `table` (V, D), a variable, with these numbers, in its own type: (..., D)."""
    if BACKEND == "torch":
        return matmul.lookup(table, ids, itself=by_kernel(ids))
    return ops.take(table, ids, axis=0)
