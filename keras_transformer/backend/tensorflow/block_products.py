"""Products with matrices in blocks on TensorFlow; see `backend.block_format`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_transformer.backend.block_format import BLOCK, MIDDLES


def linear(x_ND: Any, levels: Any, scales: Any, bits: int) -> Any:
    """Kernel of `backend.block_linear`."""
    levels, scales = tf.convert_to_tensor(levels), tf.convert_to_tensor(scales)
    halves = tf.split(x_ND, 8 // bits, axis=1)
    y_NF = _compiled(halves[0], levels, scales, bits, 0)
    return y_NF if bits == 8 else y_NF + _compiled(halves[1], levels, scales, bits, 1)


def _multiply(x_ND, levels, scales, bits, part):
    """Return x W^T with 8-bit levels, or with a half of the inputs of 4-bit levels."""
    number, factor = MIDDLES[bits]
    if bits == 4:
        four = tf.constant(4, "uint8")
        levels = tf.bitwise.right_shift(levels, four) if part else levels & 15
    size = scales.shape[0] * bits // 8
    pairs = tf.cast(scales[part * size : (part + 1) * size], x_ND.dtype)
    scale, center = (tf.transpose(pairs[..., i])[..., None] for i in (0, 1))
    blocks = tf.reshape(tf.cast(levels, x_ND.dtype), (levels.shape[0], -1, BLOCK))
    weights = (blocks - number) * scale + center * factor
    return tf.matmul(x_ND, tf.reshape(weights, (levels.shape[0], -1)), transpose_b=True)


# In a product with one row, XLA computes the weights inside the sum and never stores them. It would
# store them if one function computed both halves. XLA compiles this function when it runs, so sizes
# may be unknown in a graph that calls it.
_compiled = tf.function(_multiply, jit_compile=True, autograph=False, reduce_retracing=False)
