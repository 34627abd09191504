"""Decoding: from a step function and a state to token ids, for any model.

A search does not know the model. It gets the logits of the first token to choose, a state whose
tensors have the sentences as first axis, and
`step(token_ids_BK, state, index, ancestors_BKM) -> logits_BKV, state`, which takes the tokens of
all beams at one position. All beams of a sentence share one row of the state: what beam k writes
at a position stays in slot k of that position, and `ancestors_BKM` gives, for each beam and
position, the slot of its own hypothesis. So a search never reorders the state. With one beam, the
ancestors are None.

Three words for indices:

- position: number of a token in its sequence, from 0. A step gets the position of its tokens as
  `index`; a search gets as `index` the position of the first token to choose, and token i is at
  position `index` + i.
- slot: number k of a beam, from 0 to K - 1, at one position.
- place: index in a cache, s K + k for position s and slot k; modulo its size if the cache is a
  ring.

A constraint decides at each step which tokens may follow, from a state of its own. It is an object
with `allowed(state, vocab_size) -> boolean (..., V)` and `advance(state, token_ids) -> state`. All
tensors of the state have the rows, or rows and beams, as first axes, and at most three axes in all.
Tokens that are not allowed are taken only if they are forced. Log-probabilities stay those of the
whole vocabulary, so the search ranks the allowed hypotheses as the model does. Renormalizing at
each step would favour hypotheses whose beginning leaves few choices. `Phrases` is another kind of
constraint, for beam search alone: it proposes tokens, and the search keeps beams that have taken
them.

All tensors of the loop can have fixed shapes: a search can be compiled, or traced for export. Each
row has its own length limit and stops independently: the other rows of its batch do not change its
result. An iteration of the loop has three phases: `propose` the next tokens, `finish` the
hypotheses that end, `advance` those that continue. Beam search then decides which rows are `done`.
"""

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.entry import decode, decoding_loop, sampler_of
from keras_transformer.decoding.frames import decode_frames
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.loop import SearchLoop, whole_search
from keras_transformer.decoding.phrase_constraint import Phrases
from keras_transformer.decoding.rules import (
    IMPOSSIBLE,
    length_penalty_factor,
    penalize_repetition,
)
from keras_transformer.decoding.sampling import sample_rows, sampler, uniforms
from keras_transformer.decoding.tree_constraint import TreeConstraint

__all__ = [
    "IMPOSSIBLE",
    "Phrases",
    "SearchLoop",
    "TreeConstraint",
    "beam_search",
    "decode",
    "decode_frames",
    "decoding_loop",
    "greedy_search",
    "length_penalty_factor",
    "penalize_repetition",
    "sample_rows",
    "sampler",
    "sampler_of",
    "uniforms",
    "whole_search",
]
