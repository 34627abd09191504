"""The accelerators of the backend, and arrays that stay on them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import private
from keras_transformer.backend.compilation import BACKEND, is_portable

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch


def count_gpus() -> int:
    """Return the number of GPUs that the backend sees in this process."""
    if BACKEND == "jax":
        try:
            return len(jax.local_devices(backend="gpu"))
        except RuntimeError:  # this JAX has no backend of that name
            return 0
    if BACKEND == "tensorflow":
        return len(tf.config.list_physical_devices("GPU"))
    return torch.cuda.device_count()


def zeros(shape: Sequence[int], dtype: str) -> Any:
    """Return zeros outside of compiled functions; JAX does not compile a program for the shape.

    JAX (0.10) compiles `ops.zeros` anew for each shape and process: half of loading a small model.
    """
    if BACKEND != "jax" or keras.distribution.distribution() is not None:  # it compiles to split
        return ops.zeros(shape, dtype)
    return jax.device_put(np.zeros(shape, jax.numpy.dtype(dtype)))


_kept: dict[tuple[int, str], Any] = {}  # tensors by the id of their array, and device


def constant(array: np.ndarray, part: slice = slice(None)) -> Any:
    """Return a part of a constant array, as a tensor.

    On PyTorch the array is copied to an accelerator once: a copy in each call would wait for the
    device.
    """
    if BACKEND != "torch" or is_portable() or (device := str(private.device())) in ("cpu", "meta"):
        return ops.convert_to_tensor(array[part])
    key = id(array), device
    if key not in _kept:
        _kept[key] = torch.from_numpy(array).to(device)
        weakref.finalize(array, _kept.pop, key, None)
    return _kept[key][part]
