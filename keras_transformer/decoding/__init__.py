"""Decoding: from a step function and a state to token ids, for any model."""

from keras_transformer.decoding.sampling import sampler, uniforms
from keras_transformer.decoding.search import (
    IMPOSSIBLE,
    SCORINGS,
    beam_search,
    greedy_search,
    length_penalty_factor,
    penalize_repetition,
)
from keras_transformer.decoding.trees import TreeConstraint

__all__ = [
    "IMPOSSIBLE",
    "SCORINGS",
    "TreeConstraint",
    "beam_search",
    "greedy_search",
    "length_penalty_factor",
    "penalize_repetition",
    "sampler",
    "uniforms",
]
