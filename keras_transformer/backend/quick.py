"""The part of `keras.ops` that inner loops use, without its checks where Python runs each call.

Keras looks in every argument for symbolic tensors and converts it: 20 microseconds an operation
on PyTorch, more than the operation itself. Here the arguments are tensors of the backend. The
names and meanings are those of `keras.ops`; on TensorFlow and JAX the functions are, too.
"""

from __future__ import annotations

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
    "not_equal",
    "ones_like",
    "repeat",
    "reshape",
    "shape",
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

    def top_k(x, k):
        """`keras.ops.top_k`, indices int32."""
        values, indices = ops.top_k(x, k)
        return values, ops.cast(indices, "int32")

    globals().update({name: getattr(ops, name) for name in __all__ if name != "top_k"})
else:
    import torch

    from keras_transformer.backend.private import device as get_device
    from keras_transformer.backend.private import torch_dtype as to_torch_dtype

    def arange(stop, dtype):
        return torch.arange(stop, dtype=to_torch_dtype(dtype), device=get_device())

    def argmax(x, axis):
        return torch.argmax(x, axis).to(torch.int32)

    def cast(x, dtype):
        return torch.as_tensor(x, device=get_device()).to(to_torch_dtype(dtype))

    def concatenate(xs, axis):
        return torch.cat(xs, axis)

    def cumsum(x, axis):
        return torch.cumsum(x, axis, dtype=x.dtype)

    def expand_dims(x, axis):
        axes = (axis,) if isinstance(axis, int) else axis
        for place in axes:
            x = x.unsqueeze(place)
        return x

    def full(shape, fill_value, dtype):
        return torch.full(shape, fill_value, dtype=to_torch_dtype(dtype), device=get_device())

    def logsumexp(x, axis, keepdims=False):
        return torch.logsumexp(x, axis, keepdims)

    def maximum(x, y):
        return x.clamp_min(y) if isinstance(y, int | float) else torch.maximum(x, y)

    def not_equal(x, y):
        return x != y

    def ones_like(x, dtype=None):
        return torch.ones_like(x, dtype=to_torch_dtype(dtype) if dtype else None)

    def repeat(x, repeats, axis):
        return torch.repeat_interleave(x, repeats, axis)

    def reshape(x, shape):
        return x.reshape(shape)

    def shape(x):
        return tuple(x.shape)

    def split(x, count, axis):
        return torch.split(x, x.shape[axis] // count, axis)  # a cheap gradient, unlike slices

    def softmax(x, axis=-1):
        return torch.softmax(x, axis)

    def sum(x, axis):
        return torch.sum(x, axis, dtype=x.dtype)

    def take(x, indices, axis):
        return torch.index_select(x, axis, indices.reshape(-1)).unflatten(axis, indices.shape)

    def top_k(x, k):
        values, indices = torch.topk(x, k)
        return values, indices.to(torch.int32)

    def transpose(x, axes):
        return x.permute(axes)

    def zeros(shape, dtype):
        return torch.zeros(shape, dtype=to_torch_dtype(dtype), device=get_device())

    def zeros_like(x):
        return torch.zeros_like(x)

    matmul, where = torch.matmul, torch.where
