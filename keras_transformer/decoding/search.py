"""Greedy search, sampling and beam search over a step function and a tree of tensors.

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
has its own limit and stops by itself: what else is in the batch changes nothing.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.ops import best_tokens, gather, row_loop
from keras_transformer.ops import quick as ops

IMPOSSIBLE = -1e9  # the log-probability of what cannot be; finite, so that sums stay numbers
FREE, NOT_EOS = -1, -2  # what a row may take, where it is not forced to one token


SCORINGS = ("wu", "transformers")


def length_penalty_factor(length: Any, length_penalty: float, scoring: str = "wu") -> Any:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14); |Y| counts EOS.

    In `transformers` |Y|^alpha.
    """
    length = ops.cast(length, "float32")
    return (length if scoring == "transformers" else (5.0 + length) / 6.0) ** length_penalty


def penalize_repetition(logits_BV: Any, seen_BV: Any, penalty: float) -> Any:
    """Logits of tokens that were there before, made less: divided if positive, else multiplied.

    Keskar et al. 2019, section 4.1, whose formula raises negative ones; so `transformers` has it.
    """
    less_BV = ops.where(logits_BV > 0, logits_BV / penalty, logits_BV * penalty)
    return ops.where(seen_BV, less_BV, logits_BV)


def greedy_search(
    step: Callable,
    logits_BV: Any,
    state: Any,
    *,
    eos_ids: Sequence[int],
    length: Any,
    max_lengths_B: Any,
    index: Any = 1,
    pad_id: int = 0,
    banned_ids: Sequence[int] = (),
    min_length: int = 0,
    prefix_BP: Any = None,
    length_penalty: float = 0.0,
    scoring: str = "wu",
    choose: Callable | None = None,
    uniforms_BL: Any = None,
    repetition_penalty: float = 1.0,
    seen_BV: Any = None,
    constraint: Any = None,
    constraint_state: Any = None,
) -> tuple[Any, Any]:
    """Takes the most probable token at each step, or what `choose` says.

    Args:
        step: takes token ids (B, 1), the state and their position; gives logits (B, 1, V) and
            the state.
        logits_BV: logits of the first token to choose.
        state: tree of tensors with B rows.
        eos_ids: the tokens that end a sequence, whichever comes first.
        length: L, room for tokens in the output; at least every one of `max_lengths_B`.
        max_lengths_B: most tokens, EOS included, of each row; at the last one EOS is forced, the
            most probable one of several. A row's prefix and its EOS are always allowed.
        index: position of the first token to choose.
        pad_id: fills the output after EOS; never chosen.
        banned_ids: further ids that are never chosen.
        min_length: fewest tokens before EOS.
        prefix_BP: tokens that each row must start with, padded with `pad_id`, P at most L;
            None: none.
        length_penalty: alpha of Wu et al. 2016 in the score.
        scoring: as of `beam_search`.
        choose: `choose(log_probs_BV, uniform_B) -> token ids (B,)`; None: argmax.
        uniforms_BL: the random numbers of `choose`, one a row and token.
        repetition_penalty: as of `penalize_repetition`; 1: none.
        seen_BV: boolean, which tokens were there before the search; with a repetition penalty.
        constraint: as above, with at least one token always left that nothing else forbids; what
            is forced is taken all the same. None: none.
        constraint_state: its state before the first token, a tree of tensors (B, ...).

    Returns:
        ids (B, 1, L), EOS included, and scores (B, 1): the sum of the tokens' log-probabilities
        divided by the length penalty; the same form as `beam_search`.
    """
    rows, vocab_size = ops.shape(logits_BV)[0], logits_BV.shape[-1]
    banned_ids = _never(pad_id, banned_ids, eos_ids)

    def take(i, logits_BV, done_B, found, alive):
        logits_BV = ops.cast(logits_BV, "float32")
        if repetition_penalty != 1.0:
            logits_BV = penalize_repetition(logits_BV, alive["seen_BV"], repetition_penalty)
        log_z_B1 = ops.logsumexp(logits_BV, axis=-1, keepdims=True)
        allowed_BV = logits_BV + _banned(vocab_size, banned_ids)
        forced_B = _best_end(alive["forced_BL"][:, i], logits_BV, eos_ids)
        if min_length:
            is_eos_V = _among(ops.arange(vocab_size, dtype="int32"), eos_ids)
            too_early_B1 = ops.expand_dims(forced_B == NOT_EOS, 1)
            allowed_BV = ops.where(too_early_B1 & is_eos_V, IMPOSSIBLE, allowed_BV)
        if constraint is not None:
            may_BV = constraint.allowed(alive["constraint"], vocab_size)
            allowed_BV = ops.where(may_BV, allowed_BV, IMPOSSIBLE)
        if choose is None:
            chosen_B = ops.argmax(allowed_BV, axis=-1)
        else:
            chosen_B = choose(allowed_BV - log_z_B1, alive["uniforms_BL"][:, i])
        chosen_B = ops.where(forced_B >= 0, forced_B, ops.cast(chosen_B, "int32"))
        chosen_B = ops.where(done_B, pad_id, chosen_B)
        value_B = (gather(logits_BV, chosen_B[:, None], axis=1) - log_z_B1)[:, 0]
        if scoring == "transformers":
            value_B = ops.where(forced_B >= 0, 0.0, value_B)
        found = {
            "ids_BL": _write(found["ids_BL"], chosen_B, i),
            "total_B": found["total_B"] + ops.where(done_B, 0.0, value_B),
            "lengths_B": found["lengths_B"] + ops.cast(~done_B, "int32"),
        }
        done_B = done_B | _among(chosen_B, eos_ids)
        alive = {**alive, "token_B1": chosen_B[:, None]}
        if constraint is not None:
            alive["constraint"] = constraint.advance(alive["constraint"], chosen_B)
        if repetition_penalty != 1.0:
            places_V = ops.arange(vocab_size, dtype="int32")
            alive["seen_BV"] = alive["seen_BV"] | (places_V == alive["token_B1"])
        return done_B, found, alive

    def body(i, done_B, found, alive):
        logits_B1V, state = step(alive["token_B1"], alive["state"], index + i - 1)
        return take(i, logits_B1V[:, 0], done_B, found, {**alive, "state": state})

    found = {
        "ids_BL": ops.full((rows, length), pad_id, dtype="int32"),
        "total_B": ops.zeros((rows,), dtype="float32"),
        "lengths_B": ops.zeros((rows,), dtype="int32"),
    }
    forced_BL = _forced(length, max_lengths_B, eos_ids, pad_id, min_length, prefix_BP)
    alive = {"state": state, "forced_BL": forced_BL}
    if choose is not None:
        alive["uniforms_BL"] = uniforms_BL
    if repetition_penalty != 1.0:
        alive["seen_BV"] = seen_BV
    if constraint is not None:
        alive["constraint"] = constraint_state
    first = take(0, logits_BV, ops.zeros((rows,), dtype="bool"), found, alive)
    found = row_loop(body, length, *first)
    factor_B = length_penalty_factor(found["lengths_B"], length_penalty, scoring)
    scores_B = found["total_B"] / factor_B
    return ops.expand_dims(found["ids_BL"], 1), ops.expand_dims(scores_B, 1)


def beam_search(
    step: Callable,
    logits_BV: Any,
    state: Any,
    *,
    eos_ids: Sequence[int],
    length: Any,
    max_lengths_B: Any,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    index: Any = 1,
    pad_id: int = 0,
    banned_ids: Sequence[int] = (),
    min_length: int = 0,
    prefix_BP: Any = None,
    num_hypotheses: int | None = None,
    scoring: str = "wu",
    constraint: Any = None,
    constraint_state: Any = None,
) -> tuple[Any, Any]:
    """Keeps the `beam_size` most probable sequences of each row, and the best finished ones.

    A hypothesis that reaches EOS among the row's `beam_size` best is frozen with its score; the
    search goes on with the best unfinished ones, and a row ends when `beam_size` have finished and
    the best of them has a better score than any unfinished one has so far (fairseq ends without
    asking for that, and misses what is one token from its end; with a beam of 1 this is greedy
    search). Section 6.1 uses a beam of 4 and a length penalty of 0.6.

    Args:
        step: takes token ids (B, K), the state, their position and the ancestors (B, K, M) of
            the beams, M positions in all: the slot of each position up to this one, and -1 from
            there on; gives logits (B, K, V) and the state.
        beam_size: K, at least 1.
        length_penalty: alpha of Wu et al. 2016: a score is the sum of log-probabilities
            divided by ((5 + |Y|) / 6)^alpha.
        num_hypotheses: how many are wanted, by default K: a row ends as soon as so many have
            better scores than any that are still unfinished can get. The rest may be others
            then.
        scoring: "wu" as above; "transformers" as that library does (5.23, `early_stopping`
            False): the factor is |Y|^alpha, a row goes on until the worst of its finished
            hypotheses is no worse than any unfinished one, and tokens that are forced, EOS at the
            limit among them, cost nothing.
        logits_BV, state, eos_ids, length, max_lengths_B, index, pad_id, banned_ids, min_length,
            prefix_BP, constraint, constraint_state: as of `greedy_search`.

    Returns:
        ids (B, K, L), EOS included, best first, and scores (B, K). Where a row has fewer than
        K hypotheses in all, the rest are padding with the score `IMPOSSIBLE`.
    """
    rows, vocab_size = ops.shape(logits_BV)[0], logits_BV.shape[-1]
    banned_ids = _never(pad_id, banned_ids, eos_ids)
    wanted = (num_hypotheses or beam_size) - 1
    penalty = functools.partial(
        length_penalty_factor, length_penalty=length_penalty, scoring=scoring
    )
    # So many choices a beam leave K that go on, even if every beam ends in all the ways there are;
    # they may all be one beam's, whatever is banned of its tokens.
    choices = 1 + len(eos_ids)
    width = min(vocab_size, choices * beam_size + len(banned_ids))

    def take(i, logits_BKV, done_B, found, alive):
        forced_B = alive["forced_BL"][:, i]
        may_BKV = None
        if constraint is not None:
            may_BKV = constraint.allowed(alive["constraint"], vocab_size)
        values_BKW, tokens_BKW, log_z_BK1 = _candidates(logits_BKV, width, banned_ids, may_BKV)
        if min_length:
            too_early_B11 = ops.expand_dims(forced_B == NOT_EOS, (1, 2))
            too_early_BKW = _among(tokens_BKW, eos_ids) & too_early_B11
            values_BKW = ops.where(too_early_BKW, IMPOSSIBLE, values_BKW)
        cost_BK1 = log_z_BK1 if scoring == "transformers" else None
        values_BKW, tokens_BKW = _force(
            values_BKW, tokens_BKW, logits_BKV, forced_B, eos_ids, cost_BK1
        )
        total_BKW = ops.expand_dims(alive["total_BK"], 2) + values_BKW - log_z_BK1
        best_BC, flat_BC = ops.top_k(
            ops.reshape(total_BKW, (-1, beam_size * width)), min(choices, width) * beam_size
        )
        beam_BC = flat_BC // width
        token_BC = gather(ops.reshape(tokens_BKW, (-1, beam_size * width)), flat_BC, axis=1)
        is_eos_BC = _among(token_BC, eos_ids)

        # Finished: those among the row's K best, merged with the ones from before.
        new_BK = best_BC[:, :beam_size]
        is_new_BK = is_eos_BC[:, :beam_size] & (new_BK > IMPOSSIBLE / 2) & ~done_B[:, None]
        lengths_BK = (1 + i) * ops.ones_like(token_BC[:, :beam_size])
        new_BK = new_BK / penalty(lengths_BK)
        new_BK = ops.where(is_new_BK, new_BK, IMPOSSIBLE)
        ended_BKL = _pick(alive["ids_BKL"], beam_BC[:, :beam_size])
        ended_BKL = _write(ended_BKL, token_BC[:, :beam_size], i)
        scores_BK, order_BK = ops.top_k(
            ops.concatenate([found["scores_BK"], new_BK], axis=1), beam_size
        )
        ids_BKL = _pick(ops.concatenate([found["ids_BKL"], ended_BKL], axis=1), order_BK)
        is_full_B = scores_BK[:, -1] > IMPOSSIBLE / 2  # the last of them is the worst
        done_B = done_B | _among(forced_B, eos_ids)

        # Alive: the K best that go on, each in the slot of its new number.
        total_BK, choice_BK = ops.top_k(ops.where(is_eos_BC, IMPOSSIBLE, best_BC), beam_size)
        best_alive_B = total_BK[:, 0] / penalty(1 + i)
        decisive_B = scores_BK[:, -1 if scoring == "transformers" else 0]
        done_B = done_B | (is_full_B & (decisive_B >= best_alive_B))
        # No log-probability is above 0, and no length penalty above that of the whole length.
        reachable_B = total_BK[:, 0] / penalty(length)
        done_B = done_B | (scores_BK[:, wanted] >= reachable_B)
        beam_BK = gather(beam_BC, choice_BK, axis=1)
        token_BK = gather(token_BC, choice_BK, axis=1)
        alive = {
            **alive,
            "token_BK": token_BK,
            "total_BK": total_BK,
            "ids_BKL": _write(_pick(alive["ids_BKL"], beam_BK), token_BK, i),
        }
        if constraint is not None:
            followed = keras.tree.map_structure(lambda x: _pick(x, beam_BK), alive["constraint"])
            alive["constraint"] = constraint.advance(followed, token_BK)
        if beam_size > 1:
            own_BK = ops.zeros_like(token_BK) + ops.arange(beam_size, dtype="int32")
            alive["ancestors_BKM"] = _write(
                _pick(alive["ancestors_BKM"], beam_BK), own_BK, index + i
            )
        return done_B, {"ids_BKL": ids_BKL, "scores_BK": scores_BK}, alive

    def body(i, done_B, found, alive):
        logits_BKV, state = step(
            alive["token_BK"], alive["state"], index + i - 1, alive.get("ancestors_BKM")
        )
        return take(i, logits_BKV, done_B, found, {**alive, "state": state})

    no_ids_BKL = ops.full((rows, beam_size, length), pad_id, dtype="int32")
    none_BK = ops.full((rows, beam_size), IMPOSSIBLE, dtype="float32")
    alive = {
        "state": state,
        "forced_BL": _forced(length, max_lengths_B, eos_ids, pad_id, min_length, prefix_BP),
        # One beam to begin with.
        "total_BK": ops.where(ops.arange(beam_size, dtype="int32") == 0, 0.0, none_BK),
        "ids_BKL": no_ids_BKL,
    }
    if beam_size > 1:
        # What was there before the search has one way alone, in slot 0.
        is_past_M = ops.arange(index + length, dtype="int32") < index
        slots_BKM = ops.zeros((rows, beam_size, 1), dtype="int32") - 1
        alive["ancestors_BKM"] = ops.where(is_past_M, 0, slots_BKM)

    def beams(x):
        return ops.repeat(ops.expand_dims(x, 1), beam_size, axis=1)

    if constraint is not None:
        alive["constraint"] = keras.tree.map_structure(beams, constraint_state)
    logits_BKV = beams(logits_BV)
    found = {"ids_BKL": no_ids_BKL, "scores_BK": none_BK}
    first = take(0, logits_BKV, ops.zeros((rows,), dtype="bool"), found, alive)
    found = row_loop(body, length, *first)
    is_hypothesis_BK1 = ops.expand_dims(found["scores_BK"] > IMPOSSIBLE / 2, -1)
    return ops.where(is_hypothesis_BK1, found["ids_BKL"], pad_id), found["scores_BK"]


def _candidates(logits_BKV, width, banned_ids, may_BKV):
    """The `width` best tokens of each beam with their logits (B, K, W), and log Z (B, K, 1).

    Where `may_BKV` is given, the best of those; log Z is of all.
    """
    if may_BKV is None:
        values_BKW, tokens_BKW, log_z_BK1 = best_tokens(logits_BKV, width)
    else:
        logits_BKV = ops.cast(logits_BKV, "float32")
        log_z_BK1 = ops.logsumexp(logits_BKV, axis=-1, keepdims=True)
        values_BKW, tokens_BKW = ops.top_k(ops.where(may_BKV, logits_BKV, IMPOSSIBLE), width)
    for banned_id in banned_ids:
        values_BKW = ops.where(tokens_BKW == banned_id, IMPOSSIBLE, values_BKW)
    return values_BKW, tokens_BKW, log_z_BK1


def _force(values_BKW, tokens_BKW, logits_BKV, forced_B, eos_ids, cost_BK1):
    """Candidates where a row that must take `forced_B` has that one alone, of that logit if any."""
    forced_B11 = ops.expand_dims(forced_B, (1, 2))
    forced_BK1 = ops.zeros_like(tokens_BKW[:, :, :1]) + ops.maximum(forced_B11, 0)
    forced_BK1 = ops.expand_dims(_best_end(forced_BK1[:, :, 0], logits_BKV, eos_ids), 2)
    value_BK1 = cost_BK1
    if cost_BK1 is None:
        value_BK1 = ops.cast(gather(logits_BKV, forced_BK1, axis=2), "float32")
    is_first_W = ops.arange(values_BKW.shape[-1], dtype="int32") == 0
    only_BKW = ops.where(is_first_W, value_BK1, IMPOSSIBLE)
    is_free_B11 = forced_B11 < 0
    return (
        ops.where(is_free_B11, values_BKW, only_BKW),
        ops.where(is_free_B11, tokens_BKW, forced_BK1),
    )


def _best_end(forced, logits, eos_ids):
    """What is forced (...), an end of several replaced by the one of the highest logit (..., V)."""
    if len(eos_ids) == 1:
        return forced
    of_ends = ops.concatenate([logits[..., i : i + 1] for i in eos_ids], axis=-1)
    ends = keras.ops.convert_to_tensor(eos_ids, dtype="int32")
    best = ops.take(ends, ops.argmax(of_ends, axis=-1), axis=0)
    return ops.where(_among(forced, eos_ids), best, forced)


def _forced(length, max_lengths_B, eos_ids, pad_id, min_length, prefix_BP):
    """The token each row must take at each place, its prefix's or at its limit EOS: (B, L).

    Elsewhere `NOT_EOS` as long as it is too early for the end, then `FREE`.
    """
    places_L = ops.arange(length, dtype="int32")
    free_L = ops.where(places_L < min_length, NOT_EOS, FREE)
    if prefix_BP is None:
        return ops.where(places_L + 1 >= max_lengths_B[:, None], eos_ids[0], free_L)
    is_token_BP = ops.cast(ops.not_equal(prefix_BP, pad_id), "int32")
    limits_B = ops.maximum(max_lengths_B, ops.sum(is_token_BP, axis=1) + 1)
    forced_BL = ops.where(places_L + 1 >= limits_B[:, None], eos_ids[0], free_L)
    rows, prefix_length = ops.shape(prefix_BP)
    rest = ops.full((rows, length - prefix_length), pad_id, dtype="int32")
    prefix_BL = ops.concatenate([ops.cast(prefix_BP, "int32"), rest], axis=1)
    return ops.where(prefix_BL == pad_id, forced_BL, prefix_BL)


def _never(pad_id, banned_ids, eos_ids):
    """Padding and the banned ids, but not what ends: in Whisper padding is that."""
    return tuple(one for one in (pad_id, *banned_ids) if one not in eos_ids)


def _among(token_ids, some_ids):
    """Which of the tokens are some of these."""
    return functools.reduce(operator.or_, (token_ids == one for one in some_ids))


def _banned(vocab_size, banned_ids):
    """(V,) zeros, and `IMPOSSIBLE` at the banned ids."""
    ids_V = ops.arange(vocab_size, dtype="int32")
    none_V = ops.zeros((vocab_size,), dtype="float32")
    banned_V = sum((ops.cast(ids_V == one, "float32") for one in banned_ids), none_V)
    return banned_V * IMPOSSIBLE


def _write(ids, token, i):
    """`ids` (..., L) with `token` (...) at position i."""
    here_L = ops.arange(ops.shape(ids)[-1], dtype="int32") == i
    return ops.where(here_L, ops.expand_dims(token, -1), ids)


def _pick(x_BC, choice_BK):
    """The chosen ones of each row's candidates, numbers or sequences: (B, K, ...)."""
    more = tuple(range(2, len(x_BC.shape)))
    return gather(x_BC, ops.expand_dims(choice_BK, more) if more else choice_BK, axis=1)
