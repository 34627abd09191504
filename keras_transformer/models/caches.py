"""Caches of self-attention in a search: room for later positions, and states that follow beams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_transformer.backend import at, gather, last_places, minimum, new_cache, quick


def with_room(
    own: dict[str, Any], length: Any, beam_size: int = 1, window: int | None = None
) -> dict[str, Any]:
    """Return the self-attention part of a block's cache after prefill, ready for steps.

    Args:
        own: Keys and values (B, K, P, H), or the state (B, N, F, I) of linear attention.
        length: Maximum number of positions.
        beam_size: Number of beams. Keys and values have a place for each at each position; there
            is one state for each.
        window: The block's window, whose cache is a ring of as many positions; None: no window.
    """
    if "state" in own:
        return {"state": quick.repeat(quick.expand_dims(own["state"], 1), beam_size, axis=1)}
    if window is not None:
        own = {name: last_places(x, window) for name, x in own.items()}
        length = minimum(length, window)
    return {name: new_cache(x, length, beam_size) for name, x in own.items()}


def following(caches: Sequence[dict[str, Any]], ancestors_BKM: Any, index: Any) -> list[Any]:
    """Return the caches of all blocks; each beam gets the state of the beam that it extends.

    Args:
        caches: Caches of a decoder's blocks.
        ancestors_BKM: The slot of each beam at each position; None: one beam.
        index: Position of the step.
    """
    if ancestors_BKM is None or not any("state" in cache["self"] for cache in caches):
        return list(caches)
    slots_BK = quick.maximum(at(ancestors_BKM, index - 1), 0)
    slots_BK111 = quick.expand_dims(quick.expand_dims(quick.expand_dims(slots_BK, -1), -1), -1)
    found = []
    for cache in caches:
        own = cache["self"]
        if "state" in own:
            own = {"state": gather(own["state"], slots_BK111, axis=1)}
        found.append({**cache, "self": own})
    return found
