"""Entry point of decoding: runs the search that the options select."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras_transformer.decoding.beam import beam_loop
from keras_transformer.decoding.greedy import greedy_loop
from keras_transformer.decoding.loop import SearchLoop
from keras_transformer.decoding.sampling import sampler
from keras_transformer.search import SearchOptions


def decode(
    step: Callable, logits_BV: Any, state: Any, search: SearchOptions, **sequences: Any
) -> tuple[Any, Any]:
    """Run beam search, greedy search or sampling, as the options say.

    Args:
        step, logits_BV, state, search, sequences: Arguments of `decoding_loop`.

    Returns:
        Ids (B, K, L) and scores (B, K), best first.
    """
    return decoding_loop(step, logits_BV, state, search, **sequences).run()


def decoding_loop(
    step: Callable,
    logits_BV: Any,
    state: Any,
    search: SearchOptions,
    *,
    uniforms_BL: Any = None,
    **sequences: Any,
) -> SearchLoop:
    """Return the loop of beam search, greedy search or sampling, as the options say.

    Args:
        step, logits_BV, state: See `beam_search`; one beam for sampling.
        search: Options of the search.
        uniforms_BL: See `greedy_loop`.
        sequences: Other arguments that `beam_search` and `greedy_search` share.
    """
    choose = sampler_of(search)
    if search.beam_size > 1 and choose is None:
        return beam_loop(step, logits_BV, state, search, **sequences)
    return greedy_loop(
        step, logits_BV, state, search, choose=choose, uniforms_BL=uniforms_BL, **sequences
    )


def sampler_of(search: SearchOptions) -> Callable | None:
    """Return the `choose` of `greedy_loop` for sampling; None if the options do not sample."""
    if search.temperature is None:
        return None
    return sampler(**{name: getattr(search, name) for name in search.names(draws=True)})
