"""Beam search: keeps the most probable sequences of each row, and the best finished ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import at, best_tokens, forbid, gather, put, quick
from keras_transformer.decoding.banks import best_of_all, in_turn, with_proposals
from keras_transformer.decoding.loop import SearchLoop
from keras_transformer.decoding.rules import IMPOSSIBLE, Rules, pick, with_token
from keras_transformer.search import SearchOptions


def beam_search(
    step: Callable, logits_BV: Any, state: Any, search: SearchOptions, **sequences: Any
) -> tuple[Any, Any]:
    """Keep the `beam_size` most probable sequences of each row, and the best finished ones.

    A hypothesis that reaches EOS among the `beam_size` best of its row is frozen with its score;
    the search continues with the best unfinished ones. A row ends at its maximum length, or when
    `beam_size` hypotheses have finished and the best of them scores at least as high as any
    unfinished one does so far. (fairseq omits the condition on scores, and so misses hypotheses
    that are one token from their end.) With a beam of 1 this is greedy search. Section 6.1 uses a
    beam of 4 and a length penalty of 0.6.

    Args:
        step: Takes token ids (B, K), the state, the position of these tokens and the ancestors
            (B, K, M) of the beams, None if K is 1; returns logits (B, K, V) and the state. M is the
            number of all positions. The ancestors hold a hypothesis's slot at each position up to
            this one, then -1.
        search: Options of the search; K is `beam_size`. A score is the sum of log-probabilities
            divided by ((5 + |Y|) / 6)^alpha, with `length_penalty` as alpha. If `num_hypotheses`
            is set, a row ends as soon as that many hypotheses score higher than any unfinished one
            can still reach; the remaining ones may then differ. With `early_stopping`, a row ends
            when `beam_size` hypotheses have finished. `scoring="transformers"` follows that library
            (5.23): the divisor is |Y|^alpha. A row continues until its worst finished hypothesis is
            no worse than any unfinished one. Forced tokens, including EOS at the limit, add 0 to
            the score. The repetition penalty changes log-probabilities, not logits.
            `scoring="marian"` follows Marian (1.12): the divisor is |Y|^alpha. Each finished
            hypothesis takes a slot for good, and a row ends when all slots are taken.
        logits_BV, state: See `greedy_loop`.
        sequences: Other arguments of `greedy_loop`, except those of sampling.

    Returns:
        Ids (B, K, L), EOS included, best first, and scores (B, K). If a row has fewer than K
        hypotheses in all, the remaining ids are padding and their scores `IMPOSSIBLE`.
    """
    return beam_loop(step, logits_BV, state, search, **sequences).run()


def beam_loop(
    step: Callable,
    logits_BV: Any,
    state: Any,
    search: SearchOptions,
    *,
    eos_ids: Sequence[int],
    length: Any,
    max_lengths_B: Any,
    index: Any = 1,
    pad_id: int = 0,
    banned_ids: Sequence[int] = (),
    prefix_BP: Any = None,
    past_BP: Any = None,
    constraint: Any = None,
    constraint_state: Any = None,
) -> SearchLoop:
    """Return the loop of `beam_search`.

    Args:
        step, search: See `beam_search`.
        logits_BV, state: See `greedy_loop`, which also describes all other arguments.
    """
    rules, beam_size = Rules(search, eos_ids, pad_id, banned_ids, constraint), search.beam_size
    wanted = search.num_hypotheses or beam_size
    beams = _Beams(rules, logits_BV.shape[-1], beam_size, wanted)
    rows = quick.shape(logits_BV)[0]
    no_ids_BKL = quick.full((rows, beam_size, length), pad_id, dtype="int32")
    none_BK = quick.full((rows, beam_size), IMPOSSIBLE, dtype="float32")
    alive = {
        "state": state,
        "forced_BL": rules.forced(length, max_lengths_B, prefix_BP),
        # All beams are equal at first, so only the first one counts.
        "total_BK": quick.where(quick.arange(beam_size, dtype="int32") == 0, 0.0, none_BK),
        "ids_BKL": no_ids_BKL,
    }
    if beam_size > 1:
        # At positions that precede the search all beams have the same tokens, in slot 0.
        is_past_M = quick.arange(index + length, dtype="int32") < index
        slots_BKM = quick.zeros((rows, beam_size, 1), dtype="int32") - 1
        alive["ancestors_BKM"] = quick.where(is_past_M, 0, slots_BKM)
    alive |= {name: beams.repeated(x) for name, x in rules.history(logits_BV, past_BP).items()}
    if constraint is not None:
        alive["constraint"] = keras.tree.map_structure(beams.repeated, constraint_state)

    def turn(i, done_B, results, alive):
        logits_BKV, state = step(
            alive["token_BK"], alive["state"], index + i - 1, alive.get("ancestors_BKM")
        )
        return beams.extend(i, index, logits_BKV, done_B, results, {**alive, "state": state})

    results = {"ids_BKL": no_ids_BKL, "scores_BK": none_BK}
    none_done_B = quick.zeros((rows,), dtype="bool")
    logits_BKV = (
        quick.expand_dims(logits_BV, 1) if constraint is None else beams.repeated(logits_BV)
    )
    first = beams.extend(0, index, logits_BKV, none_done_B, results, alive)

    def result(results):
        is_hypothesis_BK1 = quick.expand_dims(results["scores_BK"] > IMPOSSIBLE / 2, -1)
        return quick.where(is_hypothesis_BK1, results["ids_BKL"], pad_id), results["scores_BK"]

    return SearchLoop(first, turn, result, length, index)


@dataclass(frozen=True)
class _Candidates:
    """The C best extensions of the beams of each row, best first."""

    total_BC: Any  # sums of log-probabilities
    beam_BC: Any  # index of the beam that each extends
    token_BC: Any
    is_eos_BC: Any
    # Sort key, highest first; differs from `total_BC` with `diversity_rate` or phrases.
    key_BC: Any


@dataclass(frozen=True)
class _Beams:
    """One iteration of beam search: `propose`, `finish`, `advance`, then `done`.

    `wanted` is the number of hypotheses that a row must finish: `num_hypotheses`, or `beam_size`.
    """

    rules: Rules
    vocab_size: int
    beam_size: int
    wanted: int

    def extend(self, i, index, logits_BKV, done_B, results, alive):
        """Extend the beams by token i, to which `logits_BKV` belong: one iteration of the loop."""
        candidates = self.propose(i, logits_BKV, alive)
        if self.shrinks:
            candidates = self.shrink(candidates, results)
        results = self.finish(i, candidates, done_B, results, alive)
        alive = self.advance(i, index, candidates, alive)
        return self.done(i, done_B, results, alive), results, alive

    @property
    def shrinks(self):
        """Whether each finished hypothesis leaves one slot fewer for unfinished ones (Marian)."""
        return self.rules.search.scoring == "marian"

    def shrink(self, candidates, results):
        """Keep only as many candidates as a row has free slots; make all others impossible."""
        is_taken_BK = quick.cast(results["scores_BK"] > IMPOSSIBLE / 2, "int32")
        left_B1 = self.beam_size - quick.expand_dims(quick.sum(is_taken_BK, axis=1), 1)
        places_C = quick.arange(quick.shape(candidates.total_BC)[1], dtype="int32")
        is_left_BC = places_C < left_B1
        total_BC, key_BC = (
            quick.where(is_left_BC, x, IMPOSSIBLE) for x in (candidates.total_BC, candidates.key_BC)
        )
        return replace(candidates, total_BC=total_BC, key_BC=key_BC)

    def propose(self, i, logits_BKV, alive):
        """Return the best extensions of each row: enough that K of them are unfinished."""
        rules, beam_size = self.rules, self.beam_size
        # `choices` extensions per beam leave K unfinished ones even if each beam ends with every
        # EOS id.
        choices = 1 + len(rules.eos_ids)
        # Tokens to look at in each beam: one beam may supply all `choices * K` extensions, and the
        # tokens of `never` may be among its best.
        width = choices * beam_size + len(rules.never)
        # On TensorFlow, `vocab_size` is None with a shortlist.
        width = min(self.vocab_size or width, width)
        is_transformers_scoring = rules.search.scoring == "transformers"
        if "seen" in alive:  # the first turn has the logits of one beam
            seen_BKV = alive["seen"][:, : logits_BKV.shape[1]]
            if is_transformers_scoring:
                logits_BKV = quick.cast(logits_BKV, "float32")
                logits_BKV = logits_BKV - quick.logsumexp(logits_BKV, axis=-1, keepdims=True)
            logits_BKV = rules.penalized(logits_BKV, seen_BKV)
        forced_B = at(alive["forced_BL"], i)
        values_BKW, tokens_BKW, log_z_BK1 = self._best_of_each(i, logits_BKV, width, alive)
        if "seen" in alive and is_transformers_scoring:  # these are log-probabilities already
            log_z_BK1 = quick.zeros_like(log_z_BK1)
        if rules.search.min_length:
            too_early_B11 = quick.expand_dims(rules.is_early(forced_B), (1, 2))
            too_early_BKW = rules.is_end(tokens_BKW) & too_early_B11
            values_BKW = quick.where(too_early_BKW, IMPOSSIBLE, values_BKW)
        cost_BK1 = log_z_BK1 if is_transformers_scoring else None
        values_BKW, tokens_BKW = self._force(values_BKW, tokens_BKW, logits_BKV, forced_B, cost_BK1)
        if tokens_BKW.shape[1] < beam_size:  # the first turn has the logits of one beam
            tokens_BKW = quick.repeat(tokens_BKW, beam_size, axis=1)
        total_BKW = quick.expand_dims(alive["total_BK"], 2) + values_BKW - log_z_BK1
        count = min(choices, width) * beam_size
        num_tokens = quick.shape(tokens_BKW)[2]  # W: `width`, or more with phrases
        # All extensions of a row in one axis; E is K W.
        total_BE, token_BE = (
            quick.reshape(x, (-1, beam_size * num_tokens)) for x in (total_BKW, tokens_BKW)
        )
        key_BE = self._sort_keys(total_BE, total_BKW, values_BKW, tokens_BKW, alive)
        key_BC, flat_BC = quick.top_k(key_BE, count)
        total_BC = key_BC if key_BE is total_BE else gather(total_BE, flat_BC, axis=1)
        token_BC = gather(token_BE, flat_BC, axis=1)
        is_eos_BC = rules.is_end(token_BC) | quick.expand_dims(rules.is_last(forced_B), 1)
        return _Candidates(total_BC, flat_BC // num_tokens, token_BC, is_eos_BC, key_BC)

    def _sort_keys(self, total_BE, total_BKW, values_BKW, tokens_BKW, alive):
        """Return the sort key of each extension (B, E), E = K W, highest first.

        `total_BE` and `total_BKW` are the same totals. Without `diversity_rate` and phrases the
        result is `total_BE` itself.
        """
        key_BE, shape = total_BE, (-1, quick.shape(total_BE)[1])
        if rate := self.rules.search.diversity_rate:
            is_real_BKW = quick.cast(values_BKW > IMPOSSIBLE / 2, "float32")
            penalty_BKW = rate * (quick.cumsum(is_real_BKW, axis=-1) - 1.0)
            key_BE = quick.reshape(total_BKW - penalty_BKW, shape)
        if (phrases := self.rules.phrases) is not None:
            progress_BKW = phrases.progress(alive["constraint"], tokens_BKW)
            key_BE = in_turn(key_BE, quick.reshape(progress_BKW, shape))
        return key_BE

    def _best_of_each(self, i, logits_BKV, width, alive):
        """Return the `width` best tokens of each beam, their logits, and log Z (B, K, 1).

        Rules limit the tokens to those that they allow; log Z is always over all tokens.
        """
        rules, allowed_BKV = self.rules, logits_BKV
        if rules.constraint is not None and rules.phrases is None:
            may_BKV = rules.constraint.allowed(alive["constraint"], self.vocab_size)
            allowed_BKV = quick.where(may_BKV, quick.cast(logits_BKV, "float32"), IMPOSSIBLE)
        if rules.search.suppress_tokens or rules.search.begin_suppress_tokens:
            allowed_BKV = quick.cast(allowed_BKV, "float32")
            allowed_BKV = rules.suppress(allowed_BKV, alive["forced_BL"], i)
        if rules.search.no_repeat_ngram_size:
            beams, past_BKP = logits_BKV.shape[1], alive.get("past")  # 1 beam in the first turn
            past_BKP = None if past_BKP is None else past_BKP[:, :beams]
            repeats_BKR = rules.repeats(alive["ids_BKL"][:, :beams], i, past_BKP)
            allowed_BKV = forbid(quick.cast(allowed_BKV, "float32"), repeats_BKR, IMPOSSIBLE)
        values_BKW, tokens_BKW, log_z_BK1 = best_tokens(allowed_BKV, width)
        if allowed_BKV is not logits_BKV:
            all_BKV = quick.cast(logits_BKV, "float32")
            log_z_BK1 = quick.logsumexp(all_BKV, axis=-1, keepdims=True)
        if rules.phrases is not None:
            values_BKW, tokens_BKW = with_proposals(
                rules.phrases, alive["constraint"], values_BKW, tokens_BKW, logits_BKV
            )
        for banned_id in rules.never:
            values_BKW = quick.where(tokens_BKW == banned_id, IMPOSSIBLE, values_BKW)
        return values_BKW, tokens_BKW, log_z_BK1

    def _force(self, values_BKW, tokens_BKW, logits_BKV, forced_B, cost_BK1):
        """Leave only the forced token to rows that have one, with its logit or the given cost.

        A negative `forced_B` forces no token, see `Rules.forced`.
        """
        forced_B11 = quick.expand_dims(forced_B, (1, 2))
        forced_BK1 = quick.zeros_like(tokens_BKW[:, :, :1]) + quick.maximum(forced_B11, 0)
        forced_BK = self.rules.best_end(forced_BK1[:, :, 0], logits_BKV)
        forced_BK1 = quick.expand_dims(forced_BK, 2)
        value_BK1 = cost_BK1
        if cost_BK1 is None:
            value_BK1 = quick.cast(gather(logits_BKV, forced_BK1, axis=2), "float32")
        is_first_W = quick.arange(quick.shape(values_BKW)[-1], dtype="int32") == 0
        only_BKW = quick.where(is_first_W, value_BK1, IMPOSSIBLE)
        is_free_B11 = forced_B11 < 0
        return (
            quick.where(is_free_B11, values_BKW, only_BKW),
            quick.where(is_free_B11, tokens_BKW, forced_BK1),
        )

    def finish(self, i, candidates, done_B, results, alive):
        """Merge the hypotheses that end among the K best of a row with those that ended earlier."""
        best = slice(self.beam_size)
        new_BK = candidates.total_BC[:, best]
        is_new_BK = candidates.is_eos_BC[:, best] & (new_BK > IMPOSSIBLE / 2) & ~done_B[:, None]
        token_BK = candidates.token_BC[:, best]
        new_BK = new_BK / self.rules.penalty(1 + i)
        new_BK = quick.where(is_new_BK, new_BK, IMPOSSIBLE)
        ended_BKL = put(pick(alive["ids_BKL"], candidates.beam_BC[:, best]), token_BK, i)
        scores_BC = quick.concatenate([results["scores_BK"], new_BK], axis=1)
        scores_BK, order_BK = quick.top_k(scores_BC, self.beam_size)
        ids_BCL = quick.concatenate([results["ids_BKL"], ended_BKL], axis=1)
        return {"ids_BKL": pick(ids_BCL, order_BK), "scores_BK": scores_BK}

    def advance(self, i, index, candidates, alive):
        """Keep the K best unfinished hypotheses, in slots in the order of their sort keys."""
        unfinished_BC = quick.where(candidates.is_eos_BC, IMPOSSIBLE, candidates.key_BC)
        total_BK, choice_BK = quick.top_k(unfinished_BC, self.beam_size)
        if candidates.key_BC is not candidates.total_BC:
            total_BC = quick.where(candidates.is_eos_BC, IMPOSSIBLE, candidates.total_BC)
            total_BK = gather(total_BC, choice_BK, axis=1)
        beam_BK = gather(candidates.beam_BC, choice_BK, axis=1)
        token_BK = gather(candidates.token_BC, choice_BK, axis=1)
        alive = {
            **alive,
            "token_BK": token_BK,
            "total_BK": total_BK,
            "ids_BKL": put(pick(alive["ids_BKL"], beam_BK), token_BK, i),
        }
        if "seen" in alive:
            alive["seen"] = with_token(pick(alive["seen"], beam_BK), token_BK)
        if (constraint := self.rules.constraint) is not None:
            followed = keras.tree.map_structure(lambda x: pick(x, beam_BK), alive["constraint"])
            alive["constraint"] = constraint.advance(followed, token_BK)
        if self.beam_size > 1:
            slot_BK = quick.zeros_like(token_BK) + quick.arange(self.beam_size, dtype="int32")
            ancestors_BKM = pick(alive["ancestors_BKM"], beam_BK)
            alive["ancestors_BKM"] = put(ancestors_BKM, slot_BK, index + i)
        return alive

    def done(self, i, done_B, results, alive):
        """Return which rows need no further iteration."""
        rules, scores_BK = self.rules, results["scores_BK"]
        forced_B = at(alive["forced_BL"], i)
        done_B = done_B | rules.is_end(forced_B) | rules.is_last(forced_B)
        # The best beam, and the best one that has met all phrases.
        best_B = complete_B = alive["total_BK"][:, 0]
        if rules.search.diversity_rate:  # beams are not in order
            best_B = complete_B = ops.max(alive["total_BK"], axis=1)
        if (phrases := rules.phrases) is not None:
            best_B, complete_B = best_of_all(phrases, alive["constraint"], alive["total_BK"])
        best_alive_B = complete_B / rules.penalty(1 + i)
        decisive_B = scores_BK[:, -1 if rules.search.scoring == "transformers" else 0]
        is_full_B = scores_BK[:, -1] > IMPOSSIBLE / 2  # the last score is the worst
        if rules.search.early_stopping or self.shrinks:
            done_B = done_B | is_full_B
        done_B = done_B | (is_full_B & (decisive_B >= best_alive_B))
        # A bound: log-probabilities are at most 0, and the full length has the largest divisor.
        reachable_B = best_B / rules.penalty(quick.shape(results["ids_BKL"])[2])
        return done_B | (scores_BK[:, self.wanted - 1] >= reachable_B)

    def repeated(self, x):
        """Return x (B, ...) repeated for each beam: (B, K, ...)."""
        return quick.repeat(quick.expand_dims(x, 1), self.beam_size, axis=1)
