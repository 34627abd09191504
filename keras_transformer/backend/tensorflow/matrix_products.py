"""Matrix products on TensorFlow."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from keras import ops

from keras_transformer.backend import quick


def linear(x: Any, kernel: Any, bias: Any, transposed: bool) -> tf.Tensor:
    """Kernel of `backend.linear` for TensorFlow, without the activation.

    Keras (3.15) multiplies more than two axes by `tf.tensordot`: some twenty operations, most of
    which compute shapes.
    """
    x = tf.convert_to_tensor(x)
    kernel = ops.cast(kernel, x.dtype)  # for callers without an autocast scope
    width = quick.shape(kernel)[0 if transposed else 1]
    x_NF = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), kernel, transpose_b=transposed)
    if bias is not None:
        x_NF = x_NF + ops.cast(bias, x.dtype)
    sizes = [-1 if size is None else size for size in x.shape[:-1]]
    if sizes.count(-1) > 1 or 0 in sizes:
        sizes = [*quick.shape(x)[:-1]]
    return tf.reshape(x_NF, (*sizes, width))
