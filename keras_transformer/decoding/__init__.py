"""Decoding: from a step function and a state to token ids, for any model.

A search knows no model. It is given the logits of the first token to choose, a state whose
tensors have the sentences as first axis, and
`step(token_ids_BK, state, index, ancestors_BKM) -> logits_BKV, state`, which takes the tokens of
all beams at one position. The beams of a sentence are further positions of its one row: what beam
k wrote at a position stays in slot k of it, and `ancestors_BKM` says in which slot each beam finds
its own past. So nothing of the state is ever reordered; None stands for the one way of one beam.

A constraint says at each step which tokens may follow, from a state of its own: an object with
`allowed(state, vocab_size) -> boolean (..., V)` and `advance(state, token_ids) -> state`, both of
tensors with the rows, or the rows and beams, as first axes, fewer than four axes in all. What it
does not allow is not taken; log-probabilities stay those of the whole vocabulary. So the search
ranks what is allowed as the model does: to renormalize at each step would favour those whose
beginning leaves few choices.

The loop has fixed shapes, so each search can be compiled, or traced into a SavedModel. Every row
has its own limit and stops by itself: what else is in the batch changes nothing. A turn of the loop
has three phases: `propose` the next tokens, `finish` what ends, `advance` what continues.
"""

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.constraints import TreeConstraint
from keras_transformer.decoding.entry import decode, sampler_of
from keras_transformer.decoding.greedy import greedy_search, penalize_repetition
from keras_transformer.decoding.rules import IMPOSSIBLE, length_penalty_factor
from keras_transformer.decoding.sampling import sampler, uniforms

__all__ = [
    "IMPOSSIBLE",
    "TreeConstraint",
    "beam_search",
    "decode",
    "greedy_search",
    "length_penalty_factor",
    "penalize_repetition",
    "sampler",
    "sampler_of",
    "uniforms",
]
