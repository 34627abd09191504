"""Greedy search and sampling: one sequence per row, one token per step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.backend import at, forbid, gather, put, quick
from keras_transformer.config import require
from keras_transformer.decoding.loop import SearchLoop
from keras_transformer.decoding.rules import IMPOSSIBLE, Rules, with_token
from keras_transformer.search import SearchOptions


def greedy_search(
    step: Callable, logits_BV: Any, state: Any, search: SearchOptions, **sequences: Any
) -> tuple[Any, Any]:
    """Take the most probable token at each step, or the one that `choose` returns.

    Args:
        step, logits_BV, state, search, sequences: Arguments of `greedy_loop`.

    Returns:
        Ids (B, 1, L), EOS included, and scores (B, 1): the sum of the tokens' log-probabilities
        divided by the length penalty. `beam_search` returns the same form.
    """
    return greedy_loop(step, logits_BV, state, search, **sequences).run()


def greedy_loop(
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
    choose: Callable | None = None,
    uniforms_BL: Any = None,
    past_BP: Any = None,
    constraint: Any = None,
    constraint_state: Any = None,
) -> SearchLoop:
    """Return the loop of `greedy_search`.

    Args:
        step: Takes token ids (B, 1), the state and their position; returns logits (B, 1, V) and
            the state.
        logits_BV: Logits of the first token to choose.
        state: Tree of tensors with B rows.
        search: Options of the search; those of beams are ignored.
        eos_ids: Tokens that end a sequence, whichever comes first.
        length: L, the length of the output in tokens; at least every one of `max_lengths_B`.
        max_lengths_B: Maximum tokens of each row, EOS included. With `forced_eos` the last one is
            EOS: the most probable EOS id if there are several. A row's prefix and its EOS are
            always allowed.
        index: Position of the first token to choose.
        pad_id: Fills the output after EOS; never chosen.
        banned_ids: Further ids that are never chosen.
        prefix_BP: Tokens that each row must start with, padded with `pad_id`, P at most L; None:
            no prefix.
        choose: `choose(log_probs_BV, uniform_B) -> token ids (B,)`; None: argmax.
        uniforms_BL: Random numbers in [0, 1) for `choose`, one per row and token; None without it.
        past_BP: Tokens that precede the search, padded with -1. They count for the repetition
            penalty and `no_repeat_ngram_size`. None: no such tokens.
        constraint: Constraint as described in `keras_transformer.decoding`. It must always allow
            at least one token that is not otherwise forbidden. Forced tokens are taken even if it
            does not allow them. None: no constraint.
        constraint_state: State of the constraint before the first token, a tree of tensors
            (B, ...).
    """
    rules = Rules(search, eos_ids, pad_id, banned_ids, constraint)
    require(rules.phrases is None, "beam_size", search.beam_size, "more than 1 with phrases")
    greedy = _Greedy(rules, logits_BV.shape[-1], choose)
    rows = quick.shape(logits_BV)[0]
    results = {
        "ids_BL": quick.full((rows, length), pad_id, dtype="int32"),
        "total_B": quick.zeros((rows,), dtype="float32"),
        "lengths_B": quick.zeros((rows,), dtype="int32"),
    }
    alive = {"state": state, "forced_BL": rules.forced(length, max_lengths_B, prefix_BP)}
    if choose is not None:
        alive["uniforms_BL"] = uniforms_BL
    alive |= rules.history(logits_BV, past_BP)
    if constraint is not None:
        alive["constraint"] = constraint_state

    def turn(i, done_B, results, alive):
        logits_B1V, state = step(alive["token_B1"], alive["state"], index + i - 1)
        return greedy.extend(i, logits_B1V[:, 0], done_B, results, {**alive, "state": state})

    first = greedy.extend(0, logits_BV, quick.zeros((rows,), dtype="bool"), results, alive)

    def result(results):
        scores_B = results["total_B"] / rules.penalty(results["lengths_B"])
        return quick.expand_dims(results["ids_BL"], 1), quick.expand_dims(scores_B, 1)

    return SearchLoop(first, turn, result, length, index)


@dataclass(frozen=True)
class _Greedy:
    """One iteration of greedy search or sampling: `propose`, `finish`, `advance`."""

    rules: Rules
    vocab_size: int
    choose: Callable | None

    def extend(self, i, logits_BV, done_B, results, alive):
        """Extend each row by token i, to which `logits_BV` belong: one iteration of the loop."""
        chosen_B, value_B = self.propose(i, logits_BV, results, alive)
        chosen_B = quick.where(done_B, self.rules.pad_id, chosen_B)
        is_last_B = self.rules.is_last(at(alive["forced_BL"], i))
        done_B, results = self.finish(i, chosen_B, value_B, done_B, results)
        done_B = done_B | is_last_B
        return done_B, results, self.advance(chosen_B, alive)

    def propose(self, i, logits_BV, results, alive):
        """Return the token of each row and its log-probability."""
        rules = self.rules
        logits_BV = quick.cast(logits_BV, "float32")
        if "seen" in alive:
            logits_BV = rules.penalized(logits_BV, alive["seen"])
        log_z_B1 = quick.logsumexp(logits_BV, axis=-1, keepdims=True)
        forced_B = rules.best_end(at(alive["forced_BL"], i), logits_BV)
        allowed_BV = self._masked(logits_BV, forced_B, alive)
        allowed_BV = rules.suppress(allowed_BV, alive["forced_BL"], i)
        if rules.search.no_repeat_ngram_size:
            repeats_BR = rules.repeats(results["ids_BL"], i, alive.get("past"))
            allowed_BV = forbid(allowed_BV, repeats_BR, IMPOSSIBLE)
        if self.choose is None:
            chosen_B = quick.argmax(allowed_BV, axis=-1)
        else:
            chosen_B = self.choose(allowed_BV - log_z_B1, at(alive["uniforms_BL"], i))
        # A negative `forced_B` forces no token, see `Rules.forced`.
        chosen_B = quick.where(forced_B >= 0, forced_B, quick.cast(chosen_B, "int32"))
        value_B = (gather(logits_BV, chosen_B[:, None], axis=1) - log_z_B1)[:, 0]
        if rules.search.scoring == "transformers":
            value_B = quick.where(forced_B >= 0, 0.0, value_B)
        return chosen_B, value_B

    def _masked(self, logits_BV, forced_B, alive):
        """Return the logits without banned ids, early EOS, and what the constraint excludes."""
        rules = self.rules
        # On TensorFlow, `vocab_size` is None with a shortlist.
        size = self.vocab_size or quick.shape(logits_BV)[1]
        ids_V = quick.arange(size, dtype="int32")
        banned_V = quick.zeros((size,), dtype="float32")
        banned_V = sum((quick.cast(ids_V == x, "float32") for x in rules.never), banned_V)
        allowed_BV = logits_BV + banned_V * IMPOSSIBLE
        if rules.search.min_length:
            too_early_B1 = quick.expand_dims(rules.is_early(forced_B), 1)
            allowed_BV = quick.where(too_early_B1 & rules.is_end(ids_V), IMPOSSIBLE, allowed_BV)
        if rules.constraint is not None:
            may_BV = rules.constraint.allowed(alive["constraint"], self.vocab_size)
            allowed_BV = quick.where(may_BV, allowed_BV, IMPOSSIBLE)
        return allowed_BV

    def finish(self, i, chosen_B, value_B, done_B, results):
        """Return which rows have ended, and the results with the tokens and log-probabilities."""
        results = {
            "ids_BL": put(results["ids_BL"], chosen_B, i),
            "total_B": results["total_B"] + quick.where(done_B, 0.0, value_B),
            "lengths_B": results["lengths_B"] + quick.cast(~done_B, "int32"),
        }
        return done_B | self.rules.is_end(chosen_B), results

    def advance(self, chosen_B, alive):
        """Return the state of the loop, `alive`, for the next iteration."""
        alive = {**alive, "token_B1": chosen_B[:, None]}
        if self.rules.constraint is not None:
            alive["constraint"] = self.rules.constraint.advance(alive["constraint"], chosen_B)
        if "seen" in alive:
            alive["seen"] = with_token(alive["seen"], chosen_B)
        return alive
