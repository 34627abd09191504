"""Normalization over the last axis."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.dispatch import by_kernel, by_loop

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import kernels as torch_kernels


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Apply layer normalization over the last axis, computed in float32, returned in x's dtype."""
    if by_kernel(x):
        return torch_kernels.layer_norm(x, gamma, beta, epsilon)
    width = tuple(gamma.shape)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    if by_loop():
        return tensorflow_kernels.layer_norm(x, gamma, beta, epsilon)
    x_ = ops.cast(x, "float32")
    if BACKEND == "torch":  # Keras takes the width from x, a symbol in a recorded graph
        return torch.nn.functional.layer_norm(x_, width, gamma, beta, epsilon).to(x.dtype)
    return ops.cast(ops.layer_normalization(x_, gamma, beta, -1, epsilon), x.dtype)


def rms_norm(x: Any, scale: Any, epsilon: float) -> Any:
    """Return x / sqrt(mean(x^2) + epsilon) * scale, computed in float32, in x's dtype."""
    x_ = ops.cast(x, "float32")
    factor = ops.rsqrt(ops.mean(ops.square(x_), axis=-1, keepdims=True) + epsilon)
    return ops.cast(x_ * factor * ops.cast(scale, "float32"), x.dtype)
