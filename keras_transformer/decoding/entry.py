"""The one way in: the search that the options ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.sampling import sampler
from keras_transformer.search import SearchOptions


def decode(
    step: Callable,
    logits_BV: Any,
    state: Any,
    search: SearchOptions,
    *,
    uniforms_BL: Any = None,
    seen_BV: Any = None,
    **sequences: Any,
) -> tuple[Any, Any]:
    """Search by beams, greedily or by drawing, as the options say.

    Args:
        step, logits_BV, state: as of `beam_search`, with one beam where tokens are drawn.
        search: the options.
        uniforms_BL, seen_BV: as of `greedy_search`.
        sequences: the other arguments of both.

    Returns:
        ids (B, K, L) and scores (B, K), best first.
    """
    choose = sampler_of(search)
    if search.beam_size > 1 and choose is None:
        return beam_search(step, logits_BV, state, search, **sequences)
    drawn = dict(choose=choose, uniforms_BL=uniforms_BL, seen_BV=seen_BV)
    return greedy_search(step, logits_BV, state, search, **drawn, **sequences)


def sampler_of(search: SearchOptions) -> Callable | None:
    """Return what draws tokens as the options say, or None where the most probable are taken."""
    if search.temperature is None:
        return None
    return sampler(**{name: getattr(search, name) for name in search.names(draws=True)})
