"""Choice between a backend's own kernels and the plain formulas."""

from __future__ import annotations

from typing import Any

from keras_transformer.backend.compilation import BACKEND, in_training_step, is_portable
from keras_transformer.backend.private import in_stateless_scope

if BACKEND == "torch":
    import torch

    _PLAIN = (torch.Tensor, torch.nn.Parameter)  # exact types; other subclasses use the formulas


def uses_torch_kernels(x: Any) -> bool:
    """Return whether to use the kernels of `backend.torch` for x.

    They need real values. So they are not used while shapes are inferred or a graph is recorded,
    nor inside a `keras.StatelessScope`, which replaces the values of weights.
    """
    if BACKEND != "torch" or is_portable():
        return False
    return type(x) in _PLAIN and not x.is_meta and not in_stateless_scope()


def uses_tensorflow_kernels() -> bool:
    """Return whether to use `backend.tensorflow.kernels`: on TensorFlow inside `training_step`."""
    return BACKEND == "tensorflow" and in_training_step()
