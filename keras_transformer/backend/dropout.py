"""Dropout, fused with the residual sum that follows it (section 5.4)."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.data_parallel import num_replicas, replica_number
from keras_transformer.backend.dispatch import uses_tensorflow_kernels, uses_torch_kernels

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf

    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import kernels as torch_kernels


def dropout(x: Any, rate: float, seed_generator: Any, residual: Any = None) -> Any:
    """Apply dropout to x, and add `residual` if it is given.

    Args:
        x: Tensor of any shape.
        rate: Drop rate in [0, 1), rounded to a multiple of 1/256 (on PyTorch only by the CPU kernel
            in `backend.torch.kernels`); kept elements are scaled according to the rounded rate.
        seed_generator: A `keras.random.SeedGenerator`; ignored on PyTorch, which has its own random
            state.
        residual: Tensor of the shape of x, or None.
    """
    if uses_torch_kernels(x):
        return torch_kernels.dropout(x, rate, residual)
    if BACKEND == "torch":
        x = torch.nn.functional.dropout(x, rate)
        return x if residual is None else residual + x
    dropped = min(round(rate * 256), 255)
    random_bytes = _random_bytes(x, seed_generator.next())
    if uses_tensorflow_kernels():
        return tensorflow_kernels.dropout(x, random_bytes, dropped, residual)
    kept = ops.greater_equal(random_bytes, dropped)
    x = ops.where(kept, x * (256 / (256 - dropped)), ops.zeros_like(x))
    return x if residual is None else residual + x


def _random_bytes(x, seed):
    """Return a random uint8 per element of x; Keras's dropout draws a float per element."""
    shape = ops.shape(x)
    if BACKEND == "jax":
        words = -(-x.size // 4)
        _, bits = jax.lax.rng_bit_generator(jax.numpy.tile(seed, 2), (words,), "uint32")
        bytes_ = jax.lax.bitcast_convert_type(bits, "uint8").reshape(-1)[: x.size]
    else:
        size = tf.size(x)
        if num_replicas() > 1:  # the replicas' seed generators are equal
            seed = tf.random.experimental.stateless_fold_in(seed, replica_number())
        words = tf.random.stateless_uniform([(size + 7) // 8], seed, None, None, tf.int64)
        bytes_ = tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:size]
    return ops.reshape(bytes_, shape)
