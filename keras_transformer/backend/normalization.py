"""Normalization over the last axis."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.dispatch import uses_tensorflow_kernels, uses_torch_kernels
from keras_transformer.backend.precision import at_least_float32

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import kernels as torch_kernels


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Return x with layer normalization over the last axis, computed at least in float32.

    `beta` may be None.
    """
    if uses_torch_kernels(x):
        return torch_kernels.layer_norm(x, gamma, beta, epsilon)
    width = tuple(gamma.shape)
    gamma = at_least_float32(gamma)
    beta = ops.zeros_like(gamma) if beta is None else at_least_float32(beta)
    if uses_tensorflow_kernels():
        return tensorflow_kernels.layer_norm(x, gamma, beta, epsilon)
    x_ = at_least_float32(x)
    if BACKEND == "torch":  # in a recorded graph, the width of x may be a symbol
        return torch.nn.functional.layer_norm(x_, width, gamma, beta, epsilon).to(x.dtype)
    centred = x_ - _mean(x_)
    factor = ops.rsqrt(_mean(ops.square(centred)) + epsilon)
    return ops.cast(centred * factor * gamma + beta, x.dtype)


def rms_norm(x: Any, scale: Any, epsilon: float) -> Any:
    """Return x / sqrt(mean(x^2) + epsilon) * scale in x's dtype, computed at least in float32."""
    x_ = at_least_float32(x)
    factor = ops.rsqrt(_mean(ops.square(x_)) + epsilon)
    return ops.cast(x_ * factor * at_least_float32(scale), x.dtype)


def _mean(x):
    """Return the mean over the last axis; `ops.mean` (Keras 3.15) rounds float64 to float32."""
    return ops.sum(x, axis=-1, keepdims=True) / x.shape[-1]
