"""Kernels for training on TensorFlow, which otherwise passes over memory once per operation.

XLA fuses the element-wise and row-wise operations between the matmuls into one loop; the matmuls
stay with oneDNN, which is faster, above all in bfloat16. `backend` calls these kernels, except
`adam_update`, only inside `training_step`: elsewhere compiling for each new shape would not pay
off, and an exported graph should not require it. Each kernel is tested against the plain formula.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

_one_loop = functools.partial(tf.function, jit_compile=True, autograph=False)


def layer_norm(x: Any, gamma_D: Any, beta_D: Any, epsilon: float) -> Any:
    """Kernel of `backend.layer_norm` for TensorFlow; gamma and beta are float32."""

    @tf.custom_gradient
    def normalized(x, gamma_D, beta_D):
        y, mean, scale = _normalize(x, gamma_D, beta_D, epsilon)

        def gradient(gradient_y):
            gradient_x, products = _normalize_gradient(gradient_y, x, gamma_D, mean, scale)
            return gradient_x, _column_sums(products), _column_sums(gradient_y)

        return y, gradient

    return normalized(x, gamma_D, beta_D)


@_one_loop
def _normalize(x, gamma_D, beta_D, epsilon):
    x_ = tf.cast(x, tf.float32)
    mean = tf.reduce_mean(x_, axis=-1, keepdims=True)
    centered = x_ - mean
    scale = tf.math.rsqrt(tf.reduce_mean(centered**2, axis=-1, keepdims=True) + epsilon)
    return tf.cast(centered * scale * gamma_D + beta_D, x.dtype), mean, scale


@_one_loop
def _normalize_gradient(gradient_y, x, gamma_D, mean, scale):
    gradient_y = tf.cast(gradient_y, tf.float32)
    normal = (tf.cast(x, tf.float32) - mean) * scale
    products = gradient_y * normal
    inner = gradient_y * gamma_D
    along = tf.reduce_mean(inner * normal, axis=-1, keepdims=True)
    gradient_x = scale * (inner - tf.reduce_mean(inner, axis=-1, keepdims=True) - normal * along)
    return tf.cast(gradient_x, x.dtype), products


def _column_sums(x):
    return tf.reduce_sum(tf.cast(x, tf.float32), axis=list(range(len(x.shape) - 1)))


def dropout(x: Any, random_bytes: Any, dropped: int, residual: Any = None) -> Any:
    """Return residual + x * 256 / (256 - dropped); x counts as 0 where random_byte < dropped."""

    @tf.custom_gradient
    def added(x, residual):
        def gradient(gradient_y):
            return _drop(gradient_y, random_bytes, dropped), gradient_y

        return _drop_and_add(x, random_bytes, dropped, residual), gradient

    @tf.custom_gradient
    def alone(x):
        return _drop(x, random_bytes, dropped), lambda y: _drop(y, random_bytes, dropped)

    return alone(x) if residual is None else added(x, residual)


def _kept(x, random_bytes, dropped):
    scaled = x * tf.cast(256 / (256 - dropped), x.dtype)
    return tf.where(random_bytes >= tf.cast(dropped, tf.uint8), scaled, tf.zeros_like(x))


_drop = _one_loop(_kept)


@_one_loop
def _drop_and_add(x, random_bytes, dropped, residual):
    return residual + _kept(x, random_bytes, dropped)


def attention(query_BNTH: Any, key_BNSH: Any, value_BNSH: Any, mask: Any) -> Any:
    """Kernel of `backend.attention` for TensorFlow, with a boolean mask or None, and no bias."""
    logits_BNTS = tf.matmul(query_BNTH, key_BNSH, transpose_b=True)
    mask = tf.ones((1, 1, 1, 1), tf.bool) if mask is None else mask
    return tf.matmul(_softmax(logits_BNTS, mask, query_BNTH.shape[-1] ** -0.5), value_BNSH)


def _softmax(logits, mask, scale):
    @tf.custom_gradient
    def weights(logits):
        result = _masked_softmax(logits, mask, scale)
        return result, lambda y: _masked_softmax_gradient(y, result, mask, scale)

    return weights(logits)


@_one_loop
def _masked_softmax(logits, mask, scale):
    lowest = -3e4 if logits.dtype == tf.float16 else -1e9
    scaled = tf.where(mask, tf.cast(logits, tf.float32) * scale, lowest)
    return tf.cast(tf.nn.softmax(scaled), logits.dtype)


@_one_loop
def _masked_softmax_gradient(gradient, weights, mask, scale):
    gradient_, weights_ = tf.cast(gradient, tf.float32), tf.cast(weights, tf.float32)
    products = gradient_ * weights_
    total = tf.reduce_sum(products, axis=-1, keepdims=True)
    result = tf.where(mask, (products - weights_ * total) * scale, 0.0)
    return tf.cast(result, gradient.dtype)


def adam_update(
    parameter: tf.Variable,
    gradient: Any,
    momentum: tf.Variable,
    velocity: tf.Variable,
    rate: Any,
    step: Any,
    beta_1: float,
    beta_2: float,
    epsilon: float,
) -> None:
    """Apply one Adam update in place, in one pass over memory; Keras's formula takes eleven."""

    def number(x):
        return tf.cast(x, parameter.dtype)

    tf.raw_ops.ResourceApplyAdam(
        var=parameter.handle,
        m=momentum.handle,
        v=velocity.handle,
        beta1_power=number(beta_1) ** number(step),
        beta2_power=number(beta_2) ** number(step),
        lr=number(rate),
        beta1=number(beta_1),
        beta2=number(beta_2),
        epsilon=number(epsilon),
        grad=number(tf.convert_to_tensor(gradient)),
    )
