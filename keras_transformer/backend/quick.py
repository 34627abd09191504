"""The operations of `keras.ops` that inner loops use, without Keras's checks on PyTorch.

Keras searches every argument for symbolic tensors and converts it, which takes 20 microseconds per
operation on PyTorch, more than the operation itself. Here the arguments must be tensors of the
backend or numbers. Names and meanings are those of `keras.ops`; on JAX and TensorFlow, with few
exceptions, these are the functions of `keras.ops` themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND

__all__ = [
    "arange",
    "argmax",
    "cast",
    "concatenate",
    "cumsum",
    "expand_dims",
    "full",
    "logsumexp",
    "matmul",
    "maximum",
    "minimum",
    "not_equal",
    "ones_like",
    "repeat",
    "reshape",
    "shape",
    "sigmoid",
    "softmax",
    "split",
    "sum",
    "take",
    "top_k",
    "transpose",
    "where",
    "zeros",
    "zeros_like",
]

if BACKEND != "torch":

    def top_k(x: Any, k: int) -> tuple[Any, Any]:
        """Return `keras.ops.top_k` with int32 indices."""
        values, indices = ops.top_k(x, k)
        return values, ops.cast(indices, "int32")

    globals().update({name: getattr(ops, name) for name in __all__ if name != "top_k"})
    if BACKEND == "tensorflow":
        import tensorflow as tf

        def shape(x: Any) -> tuple[Any, ...]:
            if not tf.is_tensor(x) or x.shape.rank is None or x.shape.is_fully_defined():
                return ops.shape(x)
            # Two operations; `ops.shape` adds four for each unknown size.
            sizes = zip(x.shape, tf.unstack(tf.shape(x)), strict=True)
            return tuple(size if static is None else static for static, size in sizes)

        def reshape(x: Any, shape: Sequence[Any]) -> Any:
            known = [size if isinstance(size, int) else -1 for size in shape]
            # If only one size is unknown, a constant shape replaces three operations.
            return tf.reshape(x, known if known.count(-1) == 1 and 0 not in known else shape)

        def split(x: Any, parts: int | Sequence[int], axis: int) -> Sequence[Any]:
            size = x.shape[axis]
            if isinstance(parts, int) or size is None:
                return ops.split(x, parts, axis)
            ends = itertools.pairwise((0, *parts, size))
            return tf.split(x, [end - start for start, end in ends], axis)

        def take(x: Any, indices: Any, axis: int) -> Any:
            return tf.gather(x, indices, axis=axis)

else:
    import torch

    from keras_transformer.backend.private import device as get_device
    from keras_transformer.backend.private import torch_dtype as to_torch_dtype

    def arange(stop: int, dtype: Any) -> Any:
        return torch.arange(stop, dtype=to_torch_dtype(dtype), device=get_device())

    def argmax(x: Any, axis: int) -> Any:
        return torch.argmax(x, axis).to(torch.int32)

    def cast(x: Any, dtype: Any) -> Any:
        if isinstance(x, int | float):  # filled in on the device, not copied to it
            return full((), x, dtype)
        return torch.as_tensor(x, device=get_device()).to(to_torch_dtype(dtype))

    def concatenate(xs: Sequence[Any], axis: int) -> Any:
        return torch.cat(xs, axis)

    def cumsum(x: Any, axis: int) -> Any:
        return torch.cumsum(x, axis, dtype=x.dtype)

    def expand_dims(x: Any, axis: int | Sequence[int]) -> Any:
        axes = (axis,) if isinstance(axis, int) else axis
        for number in axes:
            x = x.unsqueeze(number)
        return x

    def full(shape: Sequence[int], fill_value: Any, dtype: Any) -> Any:
        return torch.full(shape, fill_value, dtype=to_torch_dtype(dtype), device=get_device())

    def logsumexp(x: Any, axis: int, keepdims: bool = False) -> Any:
        # `torch.exp` takes ten times as long below -87, and e^-80 is lost in a sum with 1.
        highest = x.amax(axis, keepdim=True)
        sums = (x - highest).clamp_min_(-80).exp_().sum(axis, keepdim=True)
        result = sums.log_() + highest
        return result if keepdims else result.squeeze(axis)

    def maximum(x: Any, y: Any) -> Any:
        return x.clamp_min(y) if isinstance(y, int | float) else torch.maximum(x, y)

    def minimum(x: Any, y: Any) -> Any:
        return x.clamp_max(y) if isinstance(y, int | float) else torch.minimum(x, y)

    def not_equal(x: Any, y: Any) -> Any:
        return x != y

    def ones_like(x: Any, dtype: Any = None) -> Any:
        return torch.ones_like(x, dtype=to_torch_dtype(dtype) if dtype else None)

    def repeat(x: Any, repeats: Any, axis: int) -> Any:
        return torch.repeat_interleave(x, repeats, axis)

    def reshape(x: Any, shape: Sequence[Any]) -> Any:
        return x.reshape(shape)

    def shape(x: Any) -> tuple[Any, ...]:
        return tuple(x.shape)

    def split(x: Any, parts: int | Sequence[int], axis: int) -> Sequence[Any]:
        size = x.shape[axis]
        if isinstance(parts, int):
            return torch.split(x, size // parts, axis)  # cheaper gradient than slices
        ends = itertools.pairwise((0, *parts, size))
        return torch.split(x, [end - start for start, end in ends], axis)

    def softmax(x: Any, axis: int = -1) -> Any:
        return torch.softmax(x, axis)

    def sum(x: Any, axis: int) -> Any:
        return torch.sum(x, axis, dtype=x.dtype)

    def take(x: Any, indices: Any, axis: int) -> Any:
        return torch.index_select(x, axis, indices.reshape(-1)).unflatten(axis, indices.shape)

    def top_k(x: Any, k: int) -> tuple[Any, Any]:
        values, indices = torch.topk(x, k)
        return values, indices.to(torch.int32)

    def transpose(x: Any, axes: Sequence[int]) -> Any:
        return x.permute(axes)

    def zeros(shape: Sequence[int], dtype: Any) -> Any:
        return torch.zeros(shape, dtype=to_torch_dtype(dtype), device=get_device())

    def zeros_like(x: Any) -> Any:
        return torch.zeros_like(x)

    matmul, sigmoid, where = torch.matmul, torch.sigmoid, torch.where
