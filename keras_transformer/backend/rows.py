"""Caches with rows of different lengths, such as those of replies generated side by side."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND, IS_EAGER

if BACKEND == "jax":
    import jax
elif BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch


def is_by_row(index: Any) -> bool:
    """Return whether an index is a tensor (B,), with an index for each row, and not a scalar."""
    return len(getattr(index, "shape", ())) == 1


def write_rows(cache_BNSH: Any, update_BNTH: Any, index_B: Any) -> Any:
    """Return the cache with `update` written at places [index_b, index_b + T) of each row b.

    All of these places must exist. On PyTorch the cache is written in place.
    """
    if BACKEND == "torch":
        rows_B1 = torch.arange(cache_BNSH.shape[0], device=cache_BNSH.device)[:, None]
        steps_T = torch.arange(update_BNTH.shape[2], device=cache_BNSH.device)
        cache_BNSH[rows_B1, :, index_B[:, None] + steps_T] = update_BNTH.transpose(1, 2)
        return cache_BNSH
    if BACKEND == "jax":

        def write_row(cache_NSH, update_NTH, index):
            return jax.lax.dynamic_update_slice(cache_NSH, update_NTH, (0, index, 0))

        return jax.vmap(write_row)(cache_BNSH, update_BNTH, index_B)
    sizes = tf.unstack(tf.shape(update_BNTH)[:3])
    rows, heads, steps = tf.meshgrid(*map(tf.range, sizes), indexing="ij")
    places_BNT = steps + index_B[:, None, None]
    indices_BNT3 = tf.stack([rows, heads, places_BNT], axis=-1)
    return tf.tensor_scatter_nd_update(cache_BNSH, indices_BNT3, update_BNTH)


def most_filled(cache_BNSH: Any, index_B: Any, length: int) -> Any:
    """Return how many leading places contain the keys of all rows after `length` more tokens.

    On PyTorch it is the number of all places: reading the maximum of `index_B` would wait for the
    device.
    """
    return cache_BNSH.shape[2] if IS_EAGER else ops.max(index_B) + length


def take_rows(cache_BNSH: Any, first: Any, count: Any, places: int | None = None) -> Any:
    """Return `count` rows of a cache from row `first` on; on PyTorch a view of the first `places`.

    Args:
        cache_BNSH: The cache.
        first: Number of the first row.
        count: Number of rows.
        places: Number of places that are needed; None: all. Other backends return all.
    """
    if BACKEND == "torch":
        return cache_BNSH[int(first) : int(first) + count, :, :places]
    if BACKEND == "tensorflow":
        return cache_BNSH[first : first + count]
    _, heads, size, width = ops.shape(cache_BNSH)
    return ops.slice(cache_BNSH, (first, 0, 0, 0), (count, heads, size, width))


def put_rows(cache_BNSH: Any, rows_CNSH: Any, first: Any) -> Any:
    """Return the cache with the rows of `take_rows` written back; on PyTorch, they already are."""
    if BACKEND == "torch":  # the view was written in place
        return cache_BNSH
    if BACKEND == "tensorflow":
        end = first + tf.shape(rows_CNSH)[0]
        return tf.concat([cache_BNSH[:first], rows_CNSH, cache_BNSH[end:]], axis=0)
    return ops.slice_update(cache_BNSH, (first, 0, 0, 0), rows_CNSH)


def copy_row(cache_BNSH: Any, source: Any, target: Any, places: int | None = None) -> Any:
    """Return the cache with row `source` copied to row `target`; `places` as in `take_rows`."""
    row_1NSH = take_rows(cache_BNSH, source, 1, places)
    if BACKEND == "torch":
        take_rows(cache_BNSH, target, 1, places).copy_(row_1NSH)
    return put_rows(cache_BNSH, row_1NSH, target)


def swap_rows(cache_BNSH: Any, one: Any, other: Any, places: int | None = None) -> Any:
    """Return the cache with two rows exchanged; `places` as in `take_rows`."""
    first, second = (take_rows(cache_BNSH, row, 1, places) for row in (one, other))
    if BACKEND == "torch":
        kept = first.clone()
        first.copy_(second)
        second.copy_(kept)
    return put_rows(put_rows(cache_BNSH, second, one), first, other)
