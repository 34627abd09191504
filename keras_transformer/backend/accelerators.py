"""The number of GPUs, and tensors of zeros and of constant arrays."""

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
        except RuntimeError:  # JAX finds no GPU, or cannot use GPUs
            return 0
    if BACKEND == "tensorflow":
        return len(tf.config.list_physical_devices("GPU"))
    return torch.cuda.device_count()


def zeros(shape: Sequence[int], dtype: str) -> Any:
    """Return a tensor of zeros, for use outside of compiled functions.

    On JAX it is copied from NumPy: JAX (0.10) compiles `ops.zeros` for each shape in each process,
    which took half of the time to load a small model.
    """
    # With a distribution, Keras compiles initializers itself, so that they make split weights.
    if BACKEND != "jax" or keras.distribution.distribution() is not None:
        return ops.zeros(shape, dtype)
    return jax.device_put(np.zeros(shape, jax.numpy.dtype(dtype)))


_kept: dict[tuple[int, str], Any] = {}  # copies by the id of the array, and the device


def constant(array: np.ndarray, part: slice = slice(None)) -> Any:
    """Return a part of a constant array, along its first axis, as a tensor.

    On PyTorch the array is copied to an accelerator once, and must not change afterwards: a copy in
    each call would wait for the device.
    """
    if BACKEND != "torch" or is_portable() or (device := str(private.device())) in ("cpu", "meta"):
        return ops.convert_to_tensor(array[part])
    key = id(array), device
    if key not in _kept:
        _kept[key] = torch.from_numpy(array).to(device)
        weakref.finalize(array, _kept.pop, key, None)
    return _kept[key][part]
