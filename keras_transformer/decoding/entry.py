"""Entry point of decoding: runs the search that the options select."""

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
    """Run beam search, greedy search or sampling, as the options say.

    Args:
        step, logits_BV, state: See `beam_search`; one beam for sampling.
        search: Options of the search.
        uniforms_BL, seen_BV: See `greedy_search`.
        sequences: Other arguments of `beam_search` and `greedy_search`.

    Returns:
        Ids (B, K, L) and scores (B, K), best first.
    """
    choose = sampler_of(search)
    if search.beam_size > 1 and choose is None:
        return beam_search(step, logits_BV, state, search, seen_BV=seen_BV, **sequences)
    drawn = dict(choose=choose, uniforms_BL=uniforms_BL, seen_BV=seen_BV)
    return greedy_search(step, logits_BV, state, search, **drawn, **sequences)


def sampler_of(search: SearchOptions) -> Callable | None:
    """Return the `choose` of `greedy_search` for sampling; None if the options do not sample."""
    if search.temperature is None:
        return None
    return sampler(**{name: getattr(search, name) for name in search.names(draws=True)})
