"""Caches of self-attention in a search: room for later positions, and states that follow beams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.backend import at, gather, last_positions, minimum, new_cache, quick


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
