"""The accelerators of the backend."""

from __future__ import annotations

from keras_transformer.backend.private import BACKEND

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
