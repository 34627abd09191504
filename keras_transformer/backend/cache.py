"""Caches of keys and values, and attention over them.

With K beams, position s has K adjacent places in a cache: beam k writes to place s K + k.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

from keras import ops

from keras_transformer.backend import private, quick
from keras_transformer.backend.compilation import BACKEND, is_portable
from keras_transformer.backend.dot_product_attention import attention
from keras_transformer.backend.rows import is_by_row, write_rows

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import decoding


class _Fixed(threading.local):
    """Whether this thread is inside `fixed_caches`, and its `positions`."""

    on: bool = False
    positions: int | None = None


_fixed = _Fixed()


@contextlib.contextmanager
def fixed_caches(positions: int | None = None) -> Iterator[None]:
    """Make caches full-size from the start; then `index` and `filled` may be tensors.

    Args:
        positions: Number of positions that `attend_cache` covers if `filled` is a tensor, each with
            a place for every query (beam); None: all.
    """
    before = _fixed.on, _fixed.positions
    _fixed.on, _fixed.positions = True, positions
    try:
        yield
    finally:
        _fixed.on, _fixed.positions = before


def caches_grow() -> bool:
    """Return whether caches grow with the search, instead of having their full size at once.

    True on PyTorch, and on TensorFlow without XLA, where a slice of a full-size cache would be a
    copy; never inside `fixed_caches`.
    """
    if BACKEND != "tensorflow" or _fixed.on:
        return BACKEND == "torch" and not _fixed.on
    graph = tf.compat.v1.get_default_graph()
    return not private.in_xla(graph)


def new_cache(first_BNPH: Any, length: Any, beam_size: int = 1) -> Any:
    """Make a cache (B, N, length * K, H) for K beams; beam 0 gets the P positions of `first`.

    All other places are zeros; where caches grow, later positions have no places yet.
    """
    rows, heads, filled, width = quick.shape(first_BNPH)
    beams = ((0, 0), (0, 0), (0, 0), (0, beam_size - 1), (0, 0))
    cache_BNPKH = ops.pad(ops.expand_dims(first_BNPH, 3), beams)
    cache_BNSH = quick.reshape(cache_BNPKH, (rows, heads, filled * beam_size, width))
    if caches_grow():
        return cache_BNSH
    return ops.pad(cache_BNSH, ((0, 0), (0, 0), (0, (length - filled) * beam_size), (0, 0)))


def minimum(number: Any, most: int) -> Any:
    """Return the smaller of `number` and `most`: an int if `number` is an int, else a tensor."""
    return min(number, most) if isinstance(number, int) else ops.minimum(number, most)


def last_positions(x_BNPH: Any, window: int) -> Any:
    """Return the last `window` of P positions, or all P, in the order of a rolling cache.

    A rolling cache stores position p at place p modulo `window`. The positions are those of a
    prompt, which has no beams.
    """
    length = ops.shape(x_BNPH)[2]
    if isinstance(length, int):
        if length <= window:
            return x_BNPH
        return ops.roll(x_BNPH[:, :, -window:], length % window, axis=2)
    places = quick.arange(minimum(length, window), dtype="int32")
    return quick.take(x_BNPH, length - 1 - (length - 1 - places) % window, axis=2)


def write_cache(cache_BNSH: Any, update_BNTH: Any, index: Any, rolling: bool = False) -> Any:
    """Return the cache with `update` written at places [index, index + T).

    Where caches grow, later places may be dropped, unless the cache is `rolling`. On PyTorch
    without gradients the cache is written in place, or copied into a longer one. With an index for
    each row, (B,), this is `write_rows`.
    """
    if is_by_row(index):
        return write_rows(cache_BNSH, update_BNTH, index)
    if BACKEND == "torch" and not torch.is_grad_enabled() and not is_portable():
        return decoding.write_cache(cache_BNSH, update_BNTH, int(index) if caches_grow() else index)
    if caches_grow():
        parts = [cache_BNSH[:, :, :index], update_BNTH]
        if rolling:
            parts.append(cache_BNSH[:, :, index + ops.shape(update_BNTH)[2] :])
        return ops.concatenate(parts, axis=2)
    return ops.slice_update(cache_BNSH, (0, 0, index, 0), update_BNTH)


def cache_places(cache_BNSH: Any, filled: Any) -> Any:
    """Return how many places masks and biases must cover if the first `filled` are filled."""
    return filled if caches_grow() or isinstance(filled, int) else quick.shape(cache_BNSH)[2]


def attend_cache(
    query_BNTH: Any,
    key_BNSH: Any,
    value_BNSH: Any,
    mask: Any,
    bias: Any,
    *,
    filled: Any,
    queries: int,
    soft_cap: float | None = None,
) -> Any:
    """Return `attention` over the first `filled` places of a cache: (B, N, T, H).

    Args:
        query_BNTH, key_BNSH, value_BNSH: Queries, keys and values per head.
        mask: See `attention`. None: causal; the queries are at the last `queries` filled places.
        bias: See `attention`; covers as many places as `cache_places` returns.
        filled: Number of filled places, at most S.
        queries: Number of filled places that the queries belong to: one for each new position or
            beam. T, or 1 if the T rows are query heads that share a key head.
        soft_cap: See `attention_weights`.
    """

    def over(size):
        allowed = mask
        if mask is not None and mask.shape[-1] != 1:
            allowed = mask[..., :size]
        elif mask is None and (queries != 1 or size is not filled):
            places = quick.shape(key_BNSH[:, :, :size])[2]
            place_T1 = quick.expand_dims(filled - queries + quick.arange(queries, dtype="int32"), 1)
            allowed = quick.expand_dims(quick.arange(places, dtype="int32") <= place_T1, (0, 1))
        added = None if bias is None else bias[..., :size]
        keys, values = key_BNSH[:, :, :size], value_BNSH[:, :, :size]
        return attention(query_BNTH, keys, values, allowed, added, soft_cap=soft_cap)

    if BACKEND == "jax" and not isinstance(filled, int):
        # Shapes are static: use the smallest of a few sizes that holds all filled places.
        room = key_BNSH.shape[2]
        sizes = [room >> shift for shift in range(4) if room >> shift >= 16] or [room]
        branch = sum((filled <= size).astype("int32") for size in sizes) - 1
        return jax.lax.switch(branch, [functools.partial(over, size) for size in sizes])
    if caches_grow() or isinstance(filled, int):
        return over(filled)
    return over(_fixed.positions and _fixed.positions * queries)
