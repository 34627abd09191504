"""Caches of self-attention in a search: room for later positions, and states that follow beams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.backend import (
    at,
    gather,
    last_positions,
    mask_bias,
    minimum,
    new_cache,
    quick,
)


def with_room(
    cache: dict[str, Any], length: Any, beam_size: int = 1, window: int | None = None
) -> dict[str, Any]:
    """Return the self-attention part of a block's cache after prefill, ready for steps.

    Args:
        cache: Keys and values (B, G, P, H), or the state of linear attention (B, N, F, I) or of an
            `SSRU` (B, D).
        length: Maximum number of positions.
        beam_size: Number of beams. Keys and values get a place for each beam at each position,
            a state is repeated for each beam.
        window: The block's window, whose cache is a ring of as many positions; None: no window.
    """
    if "state" in cache:
        return {"state": quick.repeat(quick.expand_dims(cache["state"], 1), beam_size, axis=1)}
    if window is not None:
        cache = {name: last_positions(x, window) for name, x in cache.items()}
        length = minimum(length, window)
    return {name: new_cache(x, length, beam_size) for name, x in cache.items()}


def following(caches: Sequence[dict[str, Any]], ancestors_BKM: Any, index: Any) -> list[Any]:
    """Return the caches of all blocks; each beam gets the state of the beam that it extends.

    Keys and values are not changed: the mask of a step tells which places each beam may see.

    Args:
        caches: Caches of a decoder's blocks.
        ancestors_BKM: The slot that each beam sees at each position; None: one beam.
        index: Position of the step.
    """
    if ancestors_BKM is None or not any("state" in cache["self"] for cache in caches):
        return list(caches)
    slots_BK = quick.maximum(at(ancestors_BKM, index - 1), 0)
    results = []
    for cache in caches:
        part = cache["self"]
        if "state" in part:
            state = part["state"]
            shape = *quick.shape(slots_BK), *(1 for _ in state.shape[2:])
            part = {"state": gather(state, quick.reshape(slots_BK, shape), axis=1)}
        results.append({**cache, "self": part})
    return results


def beam_mask(ancestors_BKM: Any, index: Any, window: int | None, dtype: str) -> Any:
    """Return the bias (B, 1, K, S) for the places of a cache that each beam sees in a step.

    Args:
        ancestors_BKM: The slot that each beam sees at each position.
        index: Position of the step.
        window: The block's window, whose cache is a ring; None: no window.
        dtype: Dtype of the bias.
    """
    beam_size = ancestors_BKM.shape[1]
    slots_K = quick.arange(beam_size, dtype="int32")
    seen_BKM = in_cache_order(ancestors_BKM, index, -1, window)
    mask_BKMK = quick.expand_dims(seen_BKM, -1) == slots_K
    places = quick.shape(seen_BKM)[2] * beam_size
    return mask_bias(quick.reshape(mask_BKMK, (-1, 1, beam_size, places)), dtype)


def in_cache_order(x: Any, index: Any, nothing: Any, window: int | None) -> Any:
    """Return x (..., M), a value for each position, in the order of positions in a cache.

    With a window the cache is a ring, with the last `window` positions. Positions that are not yet
    in the cache get the value `nothing`.
    """
    size = quick.shape(x)[-1]
    if window is None:
        return quick.where(quick.arange(size, dtype="int32") <= index, x, nothing)
    size = minimum(size, window)
    positions = index - (index - quick.arange(size, dtype="int32")) % size
    last = quick.take(x, quick.maximum(positions, 0), axis=-1)
    return quick.where(positions >= 0, last, nothing)
