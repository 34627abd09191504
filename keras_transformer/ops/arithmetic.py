"""The arithmetic of the layers and of the loss."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.ops import quick
from keras_transformer.ops.chunked import Pattern, chunked_attention
from keras_transformer.ops.runtime import (
    BACKEND,
    in_stateless_scope,
    in_training_step,
    is_portable,
)

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf

    from keras_transformer.ops import tensorflow_kernels
elif BACKEND == "torch":
    import torch

    from keras_transformer.ops import torch_kernels

    _PLAIN = (torch.Tensor, torch.nn.Parameter)  # and none of their other subclasses


def _by_kernel(x: Any) -> bool:
    """Whether a kernel of `torch_kernels` takes x.

    It does not where x only stands for numbers, while shapes are inferred or a graph is recorded,
    nor where the numbers of weights are others than their own.
    """
    if BACKEND != "torch" or is_portable():
        return False
    return type(x) in _PLAIN and not x.is_meta and not in_stateless_scope()


def _by_loop() -> bool:
    """Whether `tensorflow_kernels` compute."""
    return BACKEND == "tensorflow" and in_training_step()


def usable_precision(precision: str) -> str:
    """`precision`; or "float32", with a warning, where this machine cannot compute in it.

    A tiny product is tried. PyTorch emulates bfloat16 on processors without units for it, at a
    tenth of float32's speed or less, and oneDNN refuses: there it counts as missing, too.

    Args:
        precision: a type or a Keras dtype policy, such as "bfloat16" or "mixed_bfloat16".
    """
    dtype = precision.removeprefix("mixed_")
    if dtype not in ("bfloat16", "float16") or _computes_in(dtype):
        return precision
    warnings.warn(
        f"precision is float32 in place of {precision}: this machine does not compute in {dtype}",
        stacklevel=2,
    )
    return "float32"


@functools.cache
def _computes_in(dtype: str) -> bool:
    try:
        x = ops.ones((2, 2), dtype)
        ops.matmul(x, x)
    except Exception:  # each backend has its own
        return False
    on_cpu = BACKEND == "torch" and x.device.type == "cpu"
    return not on_cpu or dtype != "bfloat16" or torch_kernels.computes_bfloat16()


def linear(
    x: Any,
    kernel: Any,
    bias: Any = None,
    activation: Callable | None = None,
    transposed: bool = False,
) -> Any:
    """activation(x @ kernel + bias) of the last axis.

    Args:
        x: (..., D).
        kernel: (D, F), or (F, D) if `transposed`; a variable or a tensor. On PyTorch, without
            gradients, a variable's fastest form is kept beside it until it changes.
        bias: (F,) or None.
        activation: or None.
        transposed: whether the kernel is.
    """
    if _by_kernel(x):
        x, activation = torch_kernels.linear(x, kernel, bias, activation, transposed)
    else:
        kernel = ops.cast(kernel, x.dtype)  # where the caller's scope does not
        x = ops.matmul(x, ops.transpose(kernel) if transposed else kernel)
        if bias is not None:
            x = x + bias
    return x if activation is None else activation(x)


def int8_linear(x: Any, kernel: Any, scale: Any, bias: Any = None, transposed: bool = False) -> Any:
    """x @ kernel / scale + bias of the last axis, x rounded to 8 bits a row, too.

    What Keras's layers compute that are quantized to "int8", where `has_int8_linear` says so.

    Args:
        x: (..., D).
        kernel: (D, F) int8, or (F, D) if `transposed`, a variable.
        scale: (F,), a variable: what the kernel was multiplied by.
        bias: (F,), a variable, or None.
        transposed: whether the kernel is.
    """
    return torch_kernels.int8_linear(x, kernel, scale, bias, transposed)


def has_int8_linear(x: Any) -> bool:
    """Whether `int8_linear` takes x: on PyTorch's CPU without gradients. Keras (3.15) goes by
    32-bit integers there, five times as slow as floats."""
    return _by_kernel(x) and x.device.type == "cpu" and not torch.is_grad_enabled()


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """Layer normalization of the last axis, computed in float32 and returned in x's type."""
    if _by_kernel(x):
        return torch_kernels.layer_norm(x, gamma, beta, epsilon)
    width = tuple(gamma.shape)
    gamma, beta = ops.cast(gamma, "float32"), ops.cast(beta, "float32")
    if _by_loop():
        return tensorflow_kernels.layer_norm(x, gamma, beta, epsilon)
    x_ = ops.cast(x, "float32")
    if BACKEND == "torch":  # Keras asks x for the width, which in a recorded graph is no number
        return torch.nn.functional.layer_norm(x_, width, gamma, beta, epsilon).to(x.dtype)
    return ops.cast(ops.layer_normalization(x_, gamma, beta, -1, epsilon), x.dtype)


def rms_norm(x: Any, scale: Any, epsilon: float) -> Any:
    """x / sqrt(mean(x^2) + epsilon) * scale of the last axis, computed in float32, in x's type."""
    x_ = ops.cast(x, "float32")
    factor = ops.rsqrt(ops.mean(ops.square(x_), axis=-1, keepdims=True) + epsilon)
    return ops.cast(x_ * factor * ops.cast(scale, "float32"), x.dtype)


LONG = 2048 * 2048  # weights of a head that are not made all at once
MANY_WINDOWS = 4  # from so many on only what is in them is visited


def attention(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any = None,
    bias: Any = None,
    pattern: Pattern = Pattern(),  # noqa: B008
) -> Any:
    """softmax(Q K^T / sqrt(H) + bias) V by the backend's fastest way: (B, N, T, H).

    What `attention_weights` times the values gives; the weights are not kept. From 2,048 positions
    on, or four windows, memory grows linearly with the length, where there is no bias and the
    length is known while a graph is built (under TensorFlow: not where it is None).

    Args:
        query_BNTH, key_BNSH, value_BNSH: queries, keys and values, a head apart.
        mask: boolean, True = attend, or numbers to add, as `mask_bias` makes them; broadcasts to
            (B, N, T, S).
        bias: added to the scaled products besides, broadcasts to (B, N, T, S).
        pattern: what may be seen by its place, beside the mask.
    """
    if _in_chunks(query_BNTH, key_BNSH, mask, bias, pattern):
        return chunked_attention(query_BNTH, key_BNSH, value_BNSH, mask, pattern)
    if _by_kernel(query_BNTH):
        causal = pattern == Pattern(causal=True) and mask is None and bias is None
        if not causal:
            mask = masked_by(pattern, query_BNTH, key_BNSH, mask)
        return torch_kernels.attention(query_BNTH, key_BNSH, value_BNSH, mask, bias, causal)
    mask = masked_by(pattern, query_BNTH, key_BNSH, mask)
    if _by_loop() and bias is None and (mask is None or _is_boolean(mask)):
        return tensorflow_kernels.attention(query_BNTH, key_BNSH, value_BNSH, mask)
    weights_BNTS = attention_weights(query_BNTH, key_BNSH, mask, bias)
    return ops.matmul(weights_BNTS, value_BNSH)


def _in_chunks(query_BNTH, key_BNSH, mask, bias, pattern):
    length, places = query_BNTH.shape[2], key_BNSH.shape[2]
    known = isinstance(length, int) and isinstance(places, int)  # JAX has symbols for None
    if not known or bias is not None or is_portable():
        return False
    if mask is not None and not _is_boolean(mask):
        return False
    if pattern.window is not None and places >= MANY_WINDOWS * max(pattern.window, 128):
        return True
    if length * places < LONG:
        return False
    # PyTorch's kernel is as frugal, but for a mask of every pair.
    by_kernel = _by_kernel(query_BNTH) and query_BNTH.dtype == torch.float32
    frugal = mask is None or (mask.shape[2] == 1 and not pattern.causal)
    return not (by_kernel and frugal and pattern.window is None)


def masked_by(pattern: Pattern, query_BNTH: Any, key_BNSH: Any, mask: Any = None) -> Any:
    """The mask, numbers or booleans, with what the pattern does not allow left out, too."""
    allowed = pattern.mask(quick.shape(query_BNTH)[2], quick.shape(key_BNSH)[2])
    if allowed is None or mask is None:
        return mask if allowed is None else allowed
    if _is_boolean(mask):
        return allowed & mask
    return quick.where(allowed, mask, quick.cast(_lowest(mask.dtype), mask.dtype))


def attention_weights(query_BNTH: Any, key_BNSH: Any, mask: Any = None, bias: Any = None) -> Any:
    """softmax(Q K^T / sqrt(H) + bias), rows sum to 1: (B, N, T, S).

    A query that may see nothing weighs all keys alike.
    """
    scale = query_BNTH.shape[-1] ** -0.5
    logits_BNTS = ops.matmul(query_BNTH * scale, ops.transpose(key_BNSH, (0, 1, 3, 2)))
    for numbers in (bias, None if mask is None or _is_boolean(mask) else mask):
        if numbers is not None:
            # Subtracted, for what TensorFlow 2.21 with oneDNN makes of a product and a sum in a
            # graph fails at some sizes ("Retval[0] does not have value", or nothing comes out).
            logits_BNTS = logits_BNTS - ops.negative(ops.cast(numbers, logits_BNTS.dtype))
    if mask is not None and _is_boolean(mask):
        lowest = ops.cast(_lowest(logits_BNTS.dtype), logits_BNTS.dtype)
        logits_BNTS = ops.where(mask, logits_BNTS, lowest)
    if BACKEND != "torch" and logits_BNTS.shape[-1] == 1:
        return ops.ones_like(logits_BNTS)  # Keras warns of a softmax over one number
    return quick.softmax(logits_BNTS, axis=-1)


def mask_bias(mask: Any, dtype: Any) -> Any:
    """A boolean mask in the form that `attention` takes fastest, for a mask that is used often.

    On PyTorch the numbers that added to scaled products leave out what the mask does not allow.
    """
    if BACKEND != "torch":
        return mask
    return quick.where(mask, quick.cast(0, dtype), quick.cast(_lowest(dtype), dtype))


def lookup(table: Any, ids: Any) -> Any:
    """The rows of `table` (V, D), a variable, with these numbers, in its own type: (..., D)."""
    if BACKEND == "torch":
        return torch_kernels.lookup(table, ids, itself=_by_kernel(ids))
    return ops.take(table, ids, axis=0)


def _is_boolean(mask):
    return keras.backend.standardize_dtype(mask.dtype) == "bool"


def _lowest(dtype):
    """Finite, so that a row without any key stays a number; -1e9 overflows float16."""
    return -3e4 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9


def dropout(x: Any, rate: float, seed_generator: Any, residual: Any = None) -> Any:
    """`residual` (or nothing) + x, of which a share `rate` is set to zero and the rest scaled up.

    Args:
        x: any shape.
        rate: in [0, 1); rounded to 1/256 (but on PyTorch on a GPU), and what is kept is scaled by
            the rounded rate.
        seed_generator: a `keras.random.SeedGenerator`; PyTorch has its own generator.
        residual: of x's shape, or None.
    """
    if _by_kernel(x):
        return torch_kernels.dropout(x, rate, residual)
    if BACKEND == "torch":
        x = torch.nn.functional.dropout(x, rate)
        return x if residual is None else residual + x
    dropped = min(round(rate * 256), 255)
    random_bytes = _random_bytes(x, seed_generator.next())
    if _by_loop():
        return tensorflow_kernels.dropout(x, random_bytes, dropped, residual)
    kept = ops.greater_equal(random_bytes, dropped)
    x = ops.where(kept, x * (256 / (256 - dropped)), ops.zeros_like(x))
    return x if residual is None else residual + x


def _random_bytes(x, seed):
    """As many as x has elements, uint8; Keras's dropout draws and compares a float for each."""
    shape = ops.shape(x)
    if BACKEND == "jax":
        words = -(-x.size // 4)
        _, bits = jax.lax.rng_bit_generator(jax.numpy.tile(seed, 2), (words,), "uint32")
        bytes_ = jax.lax.bitcast_convert_type(bits, "uint8").reshape(-1)[: x.size]
    else:
        size = tf.size(x)
        words = tf.random.stateless_uniform([(size + 7) // 8], seed, None, None, tf.int64)
        bytes_ = tf.reshape(tf.bitcast(words, tf.uint8), [-1])[:size]
    return ops.reshape(bytes_, shape)


def smoothed_cross_entropy(logits_BTV: Any, labels_BT: Any, label_smoothing: float) -> Any:
    """-sum_v q(v) log p(v) a token, q = (1 - e) onehot(label) + e / V: (B, T) float32.

    With log Z = logsumexp(logits) it is log Z - (1 - e) logit[label] - e mean(logits), which
    builds no distribution over the vocabulary. A label below 0, which some have for what does not
    count, gets that of label 0. PyTorch has a function for it: its autograd would
    keep eight copies of (tokens x vocabulary) of the formula, half the time of a small model.
    """
    if BACKEND == "torch":
        logits_BTV = ops.cast(logits_BTV, "float32")
        labels_BT = ops.cast(labels_BT, "int64").clamp(min=0)
        loss_N = torch.nn.functional.cross_entropy(
            logits_BTV.reshape(-1, logits_BTV.shape[-1]),
            labels_BT.reshape(-1),
            reduction="none",
            label_smoothing=label_smoothing,
        )
        return loss_N.reshape(labels_BT.shape)
    logits_BTV = ops.cast(logits_BTV, "float32")
    labels_BT1 = ops.expand_dims(ops.maximum(ops.cast(labels_BT, "int32"), 0), -1)
    chosen_BT = ops.take_along_axis(logits_BTV, labels_BT1, axis=-1)[..., 0]
    loss_BT = ops.logsumexp(logits_BTV, axis=-1) - chosen_BT
    if not label_smoothing:
        return loss_BT
    return loss_BT + label_smoothing * (chosen_BT - ops.mean(logits_BTV, axis=-1))


def projected_cross_entropy(
    hidden_BTD: Any, table_VD: Any, labels_BT: Any, label_smoothing: float, pad_id: int
) -> tuple[Any, Any]:
    """`smoothed_cross_entropy` of logits hidden @ table^T, with and without smoothing.

    Made for training: what a backend can save between the output projection and the loss, it
    saves. Labels that are `pad_id` get any finite number.

    Args:
        hidden_BTD: the last layer's output.
        table_VD: the output projection, of the same dtype.
        labels_BT: integers.
        label_smoothing: e.
        pad_id: of the labels that do not count.

    Returns:
        The smoothed loss (B, T), and the negative log-likelihood (B, T), which has no gradient.
    """
    if _by_kernel(hidden_BTD):
        return torch_kernels.projected_cross_entropy(
            hidden_BTD, table_VD, labels_BT, label_smoothing, pad_id
        )
    labels_BT = ops.maximum(ops.cast(labels_BT, "int32"), 0)
    logits_BTV = ops.cast(ops.matmul(hidden_BTD, ops.transpose(table_VD)), "float32")
    hidden_BTD, table_VD = ops.cast(hidden_BTD, "float32"), ops.cast(table_VD, "float32")
    if BACKEND == "tensorflow":
        # One operation, which makes the gradient at once; what smoothing adds comes from the
        # hidden states, lest the gradient of a gather be another (tokens x vocabulary).
        likelihood_BT = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_BT, logits_BTV)
        chosen_BT = ops.sum(hidden_BTD * ops.take(table_VD, labels_BT, axis=0), axis=-1)
    else:
        chosen_BT = ops.take_along_axis(logits_BTV, labels_BT[..., None], axis=-1)[..., 0]
        likelihood_BT = ops.logsumexp(logits_BTV, axis=-1) - chosen_BT
    mean_BT = ops.matmul(hidden_BTD, ops.mean(table_VD, axis=0))
    loss_BT = likelihood_BT + label_smoothing * (chosen_BT - mean_BT)
    return loss_BT, ops.stop_gradient(likelihood_BT)


def adam_update(parameters, gradients, momentums, velocities, rate, step, beta_1, beta_2, epsilon):
    """One update of Adam in place by the backend's own kernel; PyTorch and TensorFlow only."""
    if BACKEND == "tensorflow":
        for parameter, gradient, momentum, velocity in zip(
            parameters, gradients, momentums, velocities, strict=True
        ):
            tensorflow_kernels.adam_update(
                parameter, gradient, momentum, velocity, rate, step, beta_1, beta_2, epsilon
            )
        return
    steps = [torch.as_tensor(step, dtype=torch.float32, device=parameters[0].device)]
    torch._fused_adam_(
        parameters,
        gradients,
        momentums,
        velocities,
        [],
        steps * len(parameters),
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )
    # By its version `torch_kernels` sees that a weight has changed; this kernel does not tell it
    # (PyTorch 2.13).
    torch.autograd.graph.increment_version(parameters)
