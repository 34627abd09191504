"""Whether a backend's own kernels compute."""

from __future__ import annotations

from typing import Any

from keras_transformer.backend.compilation import BACKEND, in_training_step, is_portable
from keras_transformer.backend.private import in_stateless_scope

if BACKEND == "torch":
    import torch

    _PLAIN = (torch.Tensor, torch.nn.Parameter)  # and none of their other subclasses


def by_kernel(x: Any) -> bool:
    """Whether a kernel of `backend.torch` takes x.

    It does not where x only stands for numbers, while shapes are inferred or a graph is recorded,
    nor where the numbers of weights are others than their own.
    """
    if BACKEND != "torch" or is_portable():
        return False
    return type(x) in _PLAIN and not x.is_meta and not in_stateless_scope()


def by_loop() -> bool:
    """Whether `backend.tensorflow.kernels` compute."""
    return BACKEND == "tensorflow" and in_training_step()
