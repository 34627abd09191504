"""Scaled dot-product attention (Vaswani et al. 2017, equation 1).

`attention_weights` computes the weights by the formula; `attention` computes the attended values
by the backend's fastest kernel. `layers.dot_product_attention` uses the formula for both.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import quick
from keras_transformer.backend.chunked import Pattern, chunked_attention
from keras_transformer.backend.compilation import BACKEND, is_portable
from keras_transformer.backend.dispatch import uses_tensorflow_kernels, uses_torch_kernels

if BACKEND == "tensorflow":
    from keras_transformer.backend.tensorflow import kernels as tensorflow_kernels
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import kernels as torch_kernels


LONG = 2048 * 2048  # from this many weights per head on, attention is computed in chunks
MANY_WINDOWS = 4  # from this many windows per sequence on, chunks outside the window are skipped


def attention_weights(
    query_BNTH: Any,
    key_BNSH: Any,
    mask: Any = None,
    bias: Any = None,
    soft_cap: float | None = None,
) -> Any:
    """Return softmax(Q K^T / sqrt(H) + bias), (B, N, T, S); rows sum to 1.

    With a `soft_cap` c the scaled products x are replaced by c tanh(x / c), before the bias. If a
    boolean mask allows a query no key, all its weights are equal. See `attention` for the
    arguments.
    """
    scale = query_BNTH.shape[-1] ** -0.5
    logits_BNTS = ops.matmul(query_BNTH * scale, ops.transpose(key_BNSH, (0, 1, 3, 2)))
    if soft_cap is not None:
        logits_BNTS = ops.tanh(logits_BNTS / soft_cap) * soft_cap
    for term in (bias, None if mask is None or _is_boolean(mask) else mask):
        if term is not None:
            # Subtracted, because TensorFlow 2.21 with oneDNN fuses a product and a sum in a graph,
            # which fails at some sizes ("Retval[0] does not have value", or no output at all).
            logits_BNTS = logits_BNTS - ops.negative(ops.cast(term, logits_BNTS.dtype))
    if mask is not None and _is_boolean(mask):
        lowest = ops.cast(_lowest(logits_BNTS.dtype), logits_BNTS.dtype)
        logits_BNTS = ops.where(mask, logits_BNTS, lowest)
    if BACKEND != "torch" and logits_BNTS.shape[-1] == 1:
        return ops.ones_like(logits_BNTS)  # Keras warns of a softmax over one number
    return quick.softmax(logits_BNTS, axis=-1)


def attention(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any = None,
    bias: Any = None,
    pattern: Pattern = Pattern(),  # noqa: B008
    soft_cap: float | None = None,
) -> Any:
    """Return softmax(Q K^T / sqrt(H) + bias) V, computed in the backend's fastest way.

    Equals `attention_weights` times the values, but does not keep the weights. Long inputs (`LONG`,
    `MANY_WINDOWS`) are computed in chunks, in memory that grows linearly with the length, unless a
    kernel of PyTorch needs as little. Chunks need known lengths and a boolean mask or no mask; they
    are not used with a bias, nor in portable graphs.

    Args:
        query_BNTH, key_BNSH, value_BNSH: Queries, keys and values per head.
        mask: Boolean, True = attend, or values to add, from `mask_bias`; broadcasts to
            (B, N, T, S). None: attend to all.
        bias: Added to the scaled products; broadcasts to (B, N, T, S).
        pattern: Limits the keys by their positions; a key must be allowed by it and by the mask.
        soft_cap: See `attention_weights`; with it, no fused kernel is used.

    Returns:
        The attended values (B, N, T, H); arbitrary finite numbers for a query that may attend to no
        key.
    """
    if _in_chunks(query_BNTH, key_BNSH, mask, bias, pattern, soft_cap):
        return chunked_attention(query_BNTH, key_BNSH, value_BNSH, mask, pattern, soft_cap)
    if soft_cap is None and uses_torch_kernels(query_BNTH):
        causal = pattern == Pattern(causal=True) and mask is None and bias is None
        if not causal:
            mask = masked_by(pattern, query_BNTH, key_BNSH, mask)
        return torch_kernels.attention(query_BNTH, key_BNSH, value_BNSH, mask, bias, causal)
    mask = masked_by(pattern, query_BNTH, key_BNSH, mask)
    plain = bias is None and soft_cap is None and (mask is None or _is_boolean(mask))
    if plain and uses_tensorflow_kernels():
        return tensorflow_kernels.attention(query_BNTH, key_BNSH, value_BNSH, mask)
    weights_BNTS = attention_weights(query_BNTH, key_BNSH, mask, bias, soft_cap)
    return ops.matmul(weights_BNTS, value_BNSH)


def _in_chunks(query_BNTH, key_BNSH, mask, bias, pattern, soft_cap):
    """Return whether attention is computed in chunks, because the input is long."""
    length, num_keys = query_BNTH.shape[2], key_BNSH.shape[2]
    # Unknown sizes are None on TensorFlow, and symbols on JAX.
    known = isinstance(length, int) and isinstance(num_keys, int)
    if not known or bias is not None or is_portable():
        return False
    if mask is not None and not _is_boolean(mask):
        return False
    if pattern.window is not None and num_keys >= MANY_WINDOWS * max(pattern.window, 128):
        return True
    if length * num_keys < LONG:
        return False
    # PyTorch's kernel needs as little memory as chunks, unless there is a mask over all pairs.
    has_kernel = uses_torch_kernels(query_BNTH) and query_BNTH.dtype == torch.float32
    frugal = mask is None or (mask.shape[2] == 1 and not pattern.causal)
    return not (has_kernel and frugal and pattern.window is None and soft_cap is None)


def masked_by(pattern: Pattern, query_BNTH: Any, key_BNSH: Any, mask: Any = None) -> Any:
    """Return a mask (boolean, additive or None) combined with a pattern; None: attend to all."""
    if not pattern.hides:
        return mask
    allowed = pattern.mask(quick.shape(query_BNTH)[2], quick.shape(key_BNSH)[2])
    if mask is None:
        return allowed
    if _is_boolean(mask):
        return allowed & mask
    return quick.where(allowed, mask, quick.cast(_lowest(mask.dtype), mask.dtype))


def mask_bias(mask: Any, dtype: Any) -> Any:
    """Convert a boolean mask, before it is used several times, to the fastest form for `attention`.

    On PyTorch these are values to add to the scaled products: 0 to attend, else a large negative
    number. On other backends the mask stays boolean.
    """
    if BACKEND != "torch":
        return mask
    return quick.cast(torch.zeros_like(mask), dtype).masked_fill_(~mask, _lowest(dtype))


def _is_boolean(mask):
    if BACKEND == "torch" and isinstance(mask, torch.Tensor):
        return mask.dtype is torch.bool
    return keras.backend.standardize_dtype(mask.dtype) == "bool"


def _lowest(dtype):
    """Return the mask value: finite, to avoid NaN in fully masked rows; -1e9 overflows float16."""
    return -3e4 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9
