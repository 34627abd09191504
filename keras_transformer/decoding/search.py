"""Greedy search, sampling and beam search over a step function and a tree of tensors.

A search knows no model. It is given the logits of the first token to choose, a state whose
tensors have the rows as first axis, and `step(token_ids_R, state, index) -> logits_RV, state`.
All loops are `keras.ops` loops with fixed shapes, so each search can be compiled, or traced into
a SavedModel. Every row has its own limit and stops by itself: what else is in the batch changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

IMPOSSIBLE = -1e9  # the log-probability of what cannot be; finite, so that sums stay numbers


def length_penalty_factor(length: Any, length_penalty: float) -> Any:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14); |Y| counts EOS."""
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** length_penalty


def greedy_search(
    step: Callable,
    logits_BV: Any,
    state: Any,
    *,
    eos_id: int,
    length: Any,
    max_lengths_B: Any,
    index: Any = 1,
    pad_id: int = 0,
    banned_ids: Sequence[int] = (),
    min_length: int = 0,
    prefix_BP: Any = None,
    length_penalty: float = 0.0,
    choose: Callable | None = None,
) -> tuple[Any, Any]:
    """Takes the most probable token at each step, or what `choose` says.

    Args:
        step: takes token ids, the state and a position; gives logits and the state.
        logits_BV: logits of the first token to choose.
        state: tree of tensors with B rows.
        eos_id: the token that ends a sequence.
        length: L, room for tokens in the output; at least every one of `max_lengths_B`.
        max_lengths_B: most tokens, EOS included, of each row; at the last one EOS is forced. A
            row's prefix and its EOS are always allowed.
        index: position of the first token to choose.
        pad_id: fills the output after EOS; never chosen.
        banned_ids: further ids that are never chosen.
        min_length: fewest tokens before EOS.
        prefix_BP: tokens that each row must start with, padded with `pad_id`; None: none.
        length_penalty: alpha of Wu et al. 2016 in the score.
        choose: `choose(log_probs_BV, i) -> token ids (B,)` for the i-th token; None: argmax.

    Returns:
        ids (B, 1, L), EOS included, and scores (B, 1): the sum of the tokens' log-probabilities
        divided by the length penalty; the same form as `beam_search`.
    """
    rows = ops.shape(logits_BV)[0]
    banned = _banned(logits_BV, (pad_id, *banned_ids))
    max_lengths_B = _limits(max_lengths_B, prefix_BP, pad_id)
    choose = choose or (lambda log_probs_BV, i: ops.argmax(log_probs_BV, axis=-1))

    def go_on(i, logits_BV, state, ids_BL, total_B, lengths_B, done_B):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def body(i, logits_BV, state, ids_BL, total_B, lengths_B, done_B):
        log_probs_BV = ops.log_softmax(ops.cast(logits_BV, "float32"))
        allowed_BV = log_probs_BV + banned
        if min_length:
            is_eos_V = ops.arange(ops.shape(logits_BV)[-1]) == eos_id
            too_early_V = ops.logical_and(is_eos_V, i < min_length)
            allowed_BV = ops.where(too_early_V, IMPOSSIBLE, allowed_BV)
        chosen_B = ops.cast(choose(allowed_BV, i), "int32")
        forced_B = _forced(i, max_lengths_B, eos_id, pad_id, prefix_BP)
        chosen_B = ops.where(forced_B == pad_id, chosen_B, forced_B)
        chosen_B = ops.where(done_B, pad_id, chosen_B)
        value_B = ops.take_along_axis(log_probs_BV, chosen_B[:, None], axis=-1)[:, 0]
        total_B = total_B + ops.where(done_B, 0.0, value_B)
        lengths_B = lengths_B + ops.cast(ops.logical_not(done_B), "int32")
        done_B = ops.logical_or(done_B, chosen_B == eos_id)
        logits_BV, state = step(chosen_B, state, index + i)
        return i + 1, logits_BV, state, _write(ids_BL, chosen_B, i), total_B, lengths_B, done_B

    variables = (
        ops.convert_to_tensor(0, dtype="int32"),
        logits_BV,
        state,
        ops.full((rows, length), pad_id, dtype="int32"),
        ops.zeros((rows,), dtype="float32"),
        ops.zeros((rows,), dtype="int32"),
        ops.zeros((rows,), dtype="bool"),
    )
    _, _, _, ids_BL, total_B, lengths_B, _ = ops.while_loop(go_on, body, variables)
    scores_B = total_B / length_penalty_factor(lengths_B, length_penalty)
    return ops.expand_dims(ids_BL, 1), ops.expand_dims(scores_B, 1)


def beam_search(
    step: Callable,
    logits_BV: Any,
    state: Any,
    *,
    eos_id: int,
    length: Any,
    max_lengths_B: Any,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    index: Any = 1,
    pad_id: int = 0,
    banned_ids: Sequence[int] = (),
    min_length: int = 0,
    prefix_BP: Any = None,
) -> tuple[Any, Any]:
    """Keeps the `beam_size` most probable sequences of each row, and the best finished ones.

    A hypothesis that reaches EOS among the row's `beam_size` best is frozen with its score; the
    search goes on with the best unfinished ones, and a row ends when `beam_size` have finished
    (as in fairseq and CTranslate2; with a beam of 1 this is greedy search). Section 6.1 uses a
    beam of 4 and a length penalty of 0.6.

    Args:
        beam_size: K, at least 1.
        length_penalty: alpha of Wu et al. 2016: a score is the sum of log-probabilities
            divided by ((5 + |Y|) / 6)^alpha.
        step, logits_BV, state, eos_id, length, max_lengths_B, index, pad_id, banned_ids,
            min_length, prefix_BP: as of `greedy_search`.

    Returns:
        ids (B, K, L), EOS included, best first, and scores (B, K). Where a row has fewer than
        K hypotheses in all, the rest are padding with the score `IMPOSSIBLE`.
    """
    batch = ops.shape(logits_BV)[0]
    vocab_size = logits_BV.shape[-1]
    max_lengths_B = _limits(max_lengths_B, prefix_BP, pad_id)
    banned_ids = (pad_id, *banned_ids)
    # Enough of each beam for 2K choices of the row, whatever is banned of them.
    width = min(vocab_size, 2 * beam_size + len(banned_ids) + (1 if min_length else 0))

    def go_on(i, logits_RV, state, alive_BKL, total_BK, finished_BKL, scores_BK, done_B):
        return ops.logical_and(i < length, ops.logical_not(ops.all(done_B)))

    def body(i, logits_RV, state, alive_BKL, total_BK, finished_BKL, scores_BK, done_B):
        forced_B = _forced(i, max_lengths_B, eos_id, pad_id, prefix_BP)
        values_RW, tokens_RW = _candidates(logits_RV, width, banned_ids)
        if min_length:
            too_early_RW = ops.logical_and(tokens_RW == eos_id, i < min_length)
            values_RW = ops.where(too_early_RW, IMPOSSIBLE, values_RW)
        forced_R = ops.repeat(forced_B, beam_size, axis=0)
        values_RW, tokens_RW = _force(values_RW, tokens_RW, logits_RV, forced_R, pad_id)
        total_BKW = total_BK[:, :, None] + ops.reshape(values_RW, (-1, beam_size, width))
        # The 2K best of the row: at most K of them end here, so K remain to go on with.
        best_BC, flat_BC = ops.top_k(
            ops.reshape(total_BKW, (-1, beam_size * width)), min(2 * beam_size, beam_size * width)
        )
        beam_BC = flat_BC // width
        token_BC = ops.take_along_axis(
            ops.reshape(tokens_RW, (-1, beam_size * width)), flat_BC, axis=1
        )
        is_eos_BC = token_BC == eos_id

        # Finished: those among the row's K best, merged with the ones from before.
        new_BK = best_BC[:, :beam_size]
        is_new_BK = ops.logical_and(is_eos_BC[:, :beam_size], new_BK > IMPOSSIBLE / 2)
        is_new_BK = ops.logical_and(is_new_BK, ops.logical_not(done_B)[:, None])
        new_BK = new_BK / length_penalty_factor(i + 1, length_penalty)
        new_BK = ops.where(is_new_BK, new_BK, IMPOSSIBLE)
        ended_BKL = _write(_pick(alive_BKL, beam_BC[:, :beam_size]), token_BC[:, :beam_size], i)
        scores_BK, order_BK = ops.top_k(ops.concatenate([scores_BK, new_BK], axis=1), beam_size)
        finished_BKL = _pick(ops.concatenate([finished_BKL, ended_BKL], axis=1), order_BK)
        is_full_B = ops.all(scores_BK > IMPOSSIBLE / 2, axis=1)
        done_B = ops.logical_or(done_B, ops.logical_or(is_full_B, i + 1 >= max_lengths_B))

        # Alive: the K best that go on.
        total_BK, choice_BK = ops.top_k(ops.where(is_eos_BC, IMPOSSIBLE, best_BC), beam_size)
        beam_BK = ops.take_along_axis(beam_BC, choice_BK, axis=1)
        token_BK = ops.take_along_axis(token_BC, choice_BK, axis=1)
        alive_BKL = _write(_pick(alive_BKL, beam_BK), token_BK, i)
        first_B = ops.expand_dims(ops.arange(batch, dtype="int32") * beam_size, 1)
        rows_R = ops.reshape(first_B + ops.cast(beam_BK, "int32"), (-1,))
        state = keras.tree.map_structure(lambda x: ops.take(x, rows_R, axis=0), state)
        logits_RV, state = step(ops.reshape(token_BK, (-1,)), state, index + i)
        return i + 1, logits_RV, state, alive_BKL, total_BK, finished_BKL, scores_BK, done_B

    first_beam_BK = ops.where(ops.arange(beam_size)[None] == 0, 0.0, IMPOSSIBLE)
    none_BK = ops.full((batch, beam_size), IMPOSSIBLE, dtype="float32")
    no_ids_BKL = ops.full((batch, beam_size, length), pad_id, dtype="int32")
    variables = (
        ops.convert_to_tensor(0, dtype="int32"),
        ops.repeat(logits_BV, beam_size, axis=0),
        keras.tree.map_structure(lambda x: ops.repeat(x, beam_size, axis=0), state),
        no_ids_BKL,
        ops.zeros((batch, beam_size), dtype="float32") + first_beam_BK,
        no_ids_BKL,
        none_BK,
        ops.zeros((batch,), dtype="bool"),
    )
    _, _, _, _, _, finished_BKL, scores_BK, _ = ops.while_loop(go_on, body, variables)
    is_hypothesis_BK1 = ops.expand_dims(scores_BK > IMPOSSIBLE / 2, -1)
    return ops.where(is_hypothesis_BK1, finished_BKL, pad_id), scores_BK


def _candidates(logits_RV, width, banned_ids):
    """The `width` best tokens of each row with their log-probabilities: (R, W) twice."""
    logits_RV = ops.cast(logits_RV, "float32")
    values_RW, tokens_RW = ops.top_k(logits_RV, width)
    tokens_RW = ops.cast(tokens_RW, "int32")
    for banned_id in banned_ids:
        values_RW = ops.where(tokens_RW == banned_id, IMPOSSIBLE, values_RW)
    return values_RW - ops.logsumexp(logits_RV, axis=-1, keepdims=True), tokens_RW


def _force(values_RW, tokens_RW, logits_RV, forced_R, pad_id):
    """Candidates where a row that must take `forced_R` has that one alone."""
    forced_R1 = forced_R[:, None]
    logits_RV = ops.cast(logits_RV, "float32")
    value_R1 = ops.take_along_axis(logits_RV, forced_R1, axis=1)
    value_R1 = value_R1 - ops.logsumexp(logits_RV, axis=-1, keepdims=True)
    is_first_W = ops.arange(values_RW.shape[-1]) == 0
    only_RW = ops.where(is_first_W[None], value_R1, IMPOSSIBLE)
    free_R1 = forced_R1 == pad_id
    return ops.where(free_R1, values_RW, only_RW), ops.where(free_R1, tokens_RW, forced_R1)


def _limits(max_lengths_B, prefix_BP, pad_id):
    """Most tokens of each row, with room for its prefix and EOS."""
    if prefix_BP is None:
        return max_lengths_B
    is_token_BP = ops.cast(ops.not_equal(prefix_BP, pad_id), max_lengths_B.dtype)
    return ops.maximum(max_lengths_B, ops.sum(is_token_BP, axis=1) + 1)


def _forced(i, max_lengths_B, eos_id, pad_id, prefix_BP):
    """The token each row must take now, its prefix's or at its limit EOS; `pad_id`: any."""
    forced_B = ops.where(i + 1 >= max_lengths_B, eos_id, pad_id)
    if prefix_BP is not None:
        size = ops.shape(prefix_BP)[1]
        column_B = ops.take(prefix_BP, ops.minimum(i, size - 1), axis=1)
        column_B = ops.where(i < size, column_B, pad_id)
        forced_B = ops.where(column_B == pad_id, forced_B, column_B)
    return ops.cast(forced_B, "int32")


def _banned(logits_BV, banned_ids):
    """(V,) zeros, and `IMPOSSIBLE` at the banned ids."""
    vocabulary = ops.arange(logits_BV.shape[-1])
    banned = sum(ops.cast(vocabulary == banned_id, "float32") for banned_id in banned_ids)
    return banned * IMPOSSIBLE


def _write(ids, token, i):
    """`ids` (..., L) with `token` (...) at position i."""
    here_L = ops.arange(ops.shape(ids)[-1]) == i
    return ops.where(here_L, ops.expand_dims(token, -1), ids)


def _pick(ids_BCL, choice_BK):
    """The chosen ones of each row's sequences: (B, K, L)."""
    return ops.take_along_axis(ids_BCL, ops.expand_dims(choice_BK, -1), axis=1)
