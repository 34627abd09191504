"""Building blocks of searches: caches, attention over them, the best tokens, the loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import private, quick
from keras_transformer.backend.attention import attention
from keras_transformer.backend.compilation import BACKEND, is_portable

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import search as torch_search


def _grows() -> bool:
    """Return whether caches grow: on PyTorch, and in TensorFlow graphs, where slices are copies."""
    if BACKEND != "tensorflow":
        return BACKEND == "torch"
    graph = tf.compat.v1.get_default_graph()
    return not private.in_xla(graph)


def new_cache(first_BNPH: Any, length: Any, beam_size: int = 1) -> Any:
    """Make a cache (B, N, length * K, H) with the first P positions in beam 0 of K.

    Later positions are undefined, or absent where caches grow.
    """
    rows, heads, filled, width = ops.shape(first_BNPH)
    beams = ((0, 0), (0, 0), (0, 0), (0, beam_size - 1), (0, 0))
    cache_BNPKH = ops.pad(ops.expand_dims(first_BNPH, 3), beams)
    cache_BNSH = ops.reshape(cache_BNPKH, (rows, heads, filled * beam_size, width))
    if _grows():
        return cache_BNSH
    return ops.pad(cache_BNSH, ((0, 0), (0, 0), (0, (length - filled) * beam_size), (0, 0)))


def at_most(number: Any, most: int) -> Any:
    """Return the minimum, as a Python number if `number` is one."""
    return min(number, most) if isinstance(number, int) else ops.minimum(number, most)


def last_places(x_BNPH: Any, window: int) -> Any:
    """Return the last `window` of P positions, or all, in the order of a rolling cache.

    A rolling cache stores position p at index p modulo `window`.
    """
    places = ops.shape(x_BNPH)[2]
    if isinstance(places, int):
        if places <= window:
            return x_BNPH
        return ops.roll(x_BNPH[:, :, -window:], places % window, axis=2)
    shift = ops.where(places > window, places % window, 0)
    return tf.roll(x_BNPH[:, :, ops.maximum(places - window, 0) :], shift, axis=2)


def write_cache(cache_BNSH: Any, update_BNTH: Any, index: Any, rolling: bool = False) -> Any:
    """Return the cache with `update` written at positions [index, index + T).

    Where caches grow, later positions are dropped, unless the cache is `rolling`. On PyTorch
    without gradients the cache is written in place, or copied into a longer one.
    """
    if BACKEND == "torch" and not torch.is_grad_enabled() and not is_portable():
        return torch_search.write_cache(cache_BNSH, update_BNTH, int(index))
    if _grows():
        parts = [cache_BNSH[:, :, :index], update_BNTH]
        if rolling:
            parts.append(cache_BNSH[:, :, index + ops.shape(update_BNTH)[2] :])
        return ops.concatenate(parts, axis=2)
    return ops.slice_update(cache_BNSH, (0, 0, index, 0), update_BNTH)


def cache_places(cache_BNSH: Any, filled: Any) -> Any:
    """Return how many cache positions masks and biases must cover if `filled` are filled."""
    return filled if _grows() or isinstance(filled, int) else quick.shape(cache_BNSH)[2]


def attend_cache(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any,
    bias: Any,
    *,
    filled: Any,
    queries: int,
) -> Any:
    """Return `attention` over the first `filled` positions of a cache: (B, N, T, H).

    Args:
        query_BNTH, key_BNSH, value_BNSH: Queries, keys and values per head.
        mask: See `attention`. None: causal; the queries are the last T filled positions.
        bias: See `attention`; covers `cache_places` positions.
        filled: Number of filled positions, at most S.
        queries: Number of queries T.
    """

    def over(size):
        allowed = mask
        if mask is not None and mask.shape[-1] != 1:
            allowed = mask[..., :size]
        elif mask is None and (queries != 1 or size is not filled):
            places = quick.shape(key_BNSH[:, :, :size])[2]
            own_T1 = quick.expand_dims(filled - queries + quick.arange(queries, dtype="int32"), 1)
            allowed = quick.expand_dims(quick.arange(places, dtype="int32") <= own_T1, (0, 1))
        added = None if bias is None else bias[..., :size]
        keys, values = key_BNSH[:, :, :size], value_BNSH[:, :, :size]
        return attention(query_BNTH, keys, values, allowed, added)

    if BACKEND == "jax" and not isinstance(filled, int):
        # Shapes are static: use the smallest of a few sizes that holds all filled positions.
        room = key_BNSH.shape[2]
        sizes = [room >> shift for shift in range(4) if room >> shift >= 16] or [room]
        branch = sum((filled <= size).astype("int32") for size in sizes) - 1
        return jax.lax.switch(branch, [functools.partial(over, size) for size in sizes])
    return over(filled if _grows() or isinstance(filled, int) else None)


def best_tokens(logits: Any, k: int) -> tuple[Any, Any, Any]:
    """Return the k highest logits of the last axis, their indices, and logsumexp of all logits.

    Args:
        logits: Logits (..., V), of any floating dtype.
        k: Number of tokens, at most V.

    Returns:
        The logits (..., k) float32 in descending order, their indices (..., k) int32, and log Z
        (..., 1) float32.
    """
    if BACKEND == "torch":
        return torch_search.best_tokens(logits, k)
    logits = ops.cast(logits, "float32")
    return *quick.top_k(logits, k), ops.logsumexp(logits, axis=-1, keepdims=True)


def gather(x: Any, indices: Any, axis: int) -> Any:
    """Return `ops.take_along_axis` for indices >= 0, whose other axes may have size 1."""
    if BACKEND == "torch":
        shape = list(x.shape)
        shape[axis] = indices.shape[axis]
        return torch.gather(x, axis, indices.long().expand(shape))
    return ops.take_along_axis(x, indices, axis=axis)


def row_loop(body: Callable, length: Any, done_B: Any, found: Any, alive: Any) -> Any:
    """Call `body` for i = 1 to `length` - 1, or until all rows are done.

    Args:
        body: `body(i, done_B, found, alive) -> done_B, found, alive`, a pure function. The results
            of a row depend on that row alone, and do not change once the row is done.
        length: Upper bound of i, exclusive.
        done_B: Boolean, True for rows that are done.
        found: Tree of tensors (B, ...) that is the result.
        alive: Tree of tensors (B, ...) that only the loop needs.

    Returns:
        The final `found`.
    """
    if BACKEND == "torch":
        return torch_search.row_loop(body, length, done_B, found, alive)

    def go_on(i, done_B, found, alive):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def turn(i, done_B, found, alive):
        return i + 1, *body(i, done_B, found, alive)

    variables = (ops.convert_to_tensor(1, dtype="int32"), done_B, found, alive)
    if not _grows():
        return ops.while_loop(go_on, turn, variables)[2]

    def shape(x):  # caches grow along their third axis
        return tf.TensorShape([*x.shape[:2], None, x.shape[3]]) if len(x.shape) == 4 else x.shape

    invariants = keras.tree.map_structure(shape, variables)
    return tf.while_loop(go_on, turn, variables, shape_invariants=invariants)[2]
