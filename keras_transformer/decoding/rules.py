"""The rules of a search: which tokens may be taken at each position, and how texts are scored."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import gather, quick
from keras_transformer.decoding.phrase_constraint import Phrases
from keras_transformer.search import SearchOptions

IMPOSSIBLE = -1e9  # log-probability of a forbidden token; finite, so that sums are not NaN
# Codes of `Rules.forced`, below all token ids. `LAST` and lower codes end the row.
FREE = -1  # any token
NOT_EOS = -2  # any token but EOS
LAST = -3  # any token, and the row ends
LAST_NOT_EOS = -4  # any token but EOS, and the row ends


def length_penalty_factor(length: Any, length_penalty: float, scoring: str = "wu") -> Any:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14); |Y| counts EOS.

    Args:
        length: |Y|, a number or a tensor.
        length_penalty: Alpha, at least 0.
        scoring: "wu"; or "transformers" or "marian", for lp(Y) = |Y|^alpha.
    """
    if hasattr(length, "dtype"):
        length = quick.cast(length, "float32")
    return ((5.0 + length) / 6.0 if scoring == "wu" else length) ** length_penalty


def penalize_repetition(logits: Any, seen: Any, penalty: Any) -> Any:
    """Return logits (..., V) that make the tokens seen earlier (..., V) less probable.

    Positive logits are divided by `penalty` and negative ones multiplied by it, as in
    `transformers`; Keskar et al. 2019, section 4.1, divide all, which raises negative logits. With
    a penalty of 1 nothing changes.
    """
    less = quick.where(logits > 0, logits / penalty, logits * penalty)
    return quick.where(seen, less, logits)


@dataclass(frozen=True)
class Rules:
    """Rules that greedy and beam search share; `greedy_loop` describes the arguments."""

    search: SearchOptions
    eos_ids: Sequence[int]
    pad_id: int = 0
    banned_ids: Sequence[int] = ()
    constraint: Any = None

    @functools.cached_property
    def never(self) -> tuple[int, ...]:
        """Padding and the banned ids, except EOS ids: Whisper pads with its EOS."""
        return tuple(x for x in (self.pad_id, *self.banned_ids) if x not in self.eos_ids)

    def suppress(self, values: Any, forced_BL: Any, i: Any) -> Any:
        """Return values (B, ..., V) in which suppressed tokens are impossible.

        These are `suppress_tokens` always, and `begin_suppress_tokens` at the first token that is
        not forced.

        Args:
            values: Logits or log-probabilities.
            forced_BL: What `forced` returned.
            i: Number of the token, from 0.
        """
        always, first = self.search.suppress_tokens, self.search.begin_suppress_tokens
        if always:
            values = self._without(values, always)
        if first:
            begins_B = quick.argmax(quick.cast(forced_BL < 0, "int32"), axis=-1) == i
            begins = quick.expand_dims(begins_B, tuple(range(1, len(values.shape))))
            values = quick.where(begins, self._without(values, first), values)
        return values

    def _without(self, values, ids):
        """Return values (..., V) in which these tokens are impossible."""
        count = max(ids) + 1  # with a shortlist, V may be known in the graph only
        if ids not in self._made:  # a bias, made once, before the loop
            bias = np.zeros(count, "float32")
            bias[list(ids)] = IMPOSSIBLE
            self._made[ids] = keras.ops.convert_to_tensor(bias)
        return quick.concatenate([values[..., :count] + self._made[ids], values[..., count:]], -1)

    @functools.cached_property
    def _made(self):
        return {}

    @property
    def phrases(self) -> Phrases | None:
        """The constraint if it is a `Phrases`, else None."""
        return self.constraint if isinstance(self.constraint, Phrases) else None

    def is_end(self, token_ids: Any) -> Any:
        """Return which of the tokens are EOS ids."""
        return functools.reduce(operator.or_, (token_ids == eos_id for eos_id in self.eos_ids))

    def penalty(self, length: Any) -> Any:
        """Return the divisor of the summed log-probabilities of a text of this length."""
        return length_penalty_factor(length, self.search.length_penalty, self.search.scoring)

    def forced(self, length: Any, max_lengths_B: Any, prefix_BP: Any) -> Any:
        """Return what each row must take as token i: (B, L) int32, token ids or codes.

        A row must take the tokens of its prefix, and with `forced_eos` EOS as its last token. All
        other entries are codes, which force no token:

        - `FREE`; or `NOT_EOS` before the minimum length.
        - Without `forced_eos`, at the row's limit: `LAST`; or `LAST_NOT_EOS` before the minimum
          length.

        Args:
            length: L.
            max_lengths_B: Maximum tokens of each row, EOS included.
            prefix_BP: Prefix of each row, padded with `pad_id`; None: no prefix.
        """
        indices_L = quick.arange(length, dtype="int32")
        free_L = quick.where(indices_L < self.search.min_length, NOT_EOS, FREE)
        # The sum: `FREE` becomes `LAST`, and `NOT_EOS` becomes `LAST_NOT_EOS`.
        end = self.eos_ids[0] if self.search.forced_eos else free_L + (LAST - FREE)
        if prefix_BP is None:
            return quick.where(indices_L + 1 >= max_lengths_B[:, None], end, free_L)
        is_token_BP = quick.cast(quick.not_equal(prefix_BP, self.pad_id), "int32")
        limits_B = quick.maximum(max_lengths_B, quick.sum(is_token_BP, axis=1) + 1)
        forced_BL = quick.where(indices_L + 1 >= limits_B[:, None], end, free_L)
        rows, prefix_length = quick.shape(prefix_BP)
        rest = quick.full((rows, length - prefix_length), self.pad_id, dtype="int32")
        prefix_BL = quick.concatenate([quick.cast(prefix_BP, "int32"), rest], axis=1)
        return quick.where(prefix_BL == self.pad_id, forced_BL, prefix_BL)

    def is_early(self, forced: Any) -> Any:
        """Return which rows must not end yet, by the codes of `Rules.forced`."""
        return (forced == NOT_EOS) | (forced == LAST_NOT_EOS)

    def is_last(self, forced: Any) -> Any:
        """Return which rows end at this token, whatever it is, by the codes of `Rules.forced`."""
        return forced <= LAST

    def history(self, logits_BV: Any, past_BP: Any) -> dict[str, Any]:
        """Return the tensors of earlier tokens that a loop needs, by name.

        They are "seen" (B, V), boolean, for the repetition penalty, and "past" (B, P) for
        `no_repeat_ngram_size`; either may be absent.

        Args:
            logits_BV: The first logits.
            past_BP: Tokens that precede the search, padded with -1; None: no such tokens.
        """
        history = {}
        if self.search.repetition_penalty != 1.0:
            history["seen"] = quick.cast(quick.zeros_like(logits_BV), "bool")
            if past_BP is not None:
                ids_V = quick.arange(quick.shape(logits_BV)[-1], dtype="int32")
                is_past_BPV = quick.expand_dims(past_BP, -1) == ids_V
                history["seen"] = keras.ops.any(is_past_BPV, axis=1)
        if self.search.no_repeat_ngram_size and past_BP is not None:
            history["past"] = quick.cast(past_BP, "int32")
        return history

    def penalized(self, logits: Any, seen: Any) -> Any:
        """Return the logits (..., V) after the repetition penalty.

        Log-probabilities are computed from these logits, as in Keskar et al. 2019, so the penalty
        counts in scores. Beam search with `scoring="transformers"` passes log-probabilities
        instead.
        """
        logits = quick.cast(logits, "float32")
        return penalize_repetition(logits, seen, self.search.repetition_penalty)

    def repeats(self, ids_L: Any, i: Any, past_P: Any = None) -> Any:
        """Return the tokens that would complete a repeated n-gram.

        Args:
            ids_L: The tokens so far (..., L).
            i: Number of these tokens; the rest of `ids_L` is ignored.
            past_P: Tokens that precede them (..., P), padded with -1; None: no such tokens.

        Returns:
            (..., R), R = L + P + 1: the tokens, and -1 in all other entries.
        """
        if past_P is not None:
            i = i + quick.shape(past_P)[-1]
            ids_L = quick.concatenate([past_P, ids_L], axis=-1)
        size = self.search.no_repeat_ngram_size
        before = size - 1
        count = quick.shape(ids_L)[-1] + 1
        none = quick.zeros_like(ids_L[..., :1]) - 1
        ids = quick.concatenate([ids_L, *[none] * size], axis=-1)
        may_follow = quick.arange(count, dtype="int32") + before < i
        indices = quick.arange(count + before, dtype="int32")
        for k in range(before):
            last = quick.sum(quick.where(indices == i - before + k, ids, 0), axis=-1)
            may_follow = may_follow & (ids[..., k : k + count] == quick.expand_dims(last, -1))
        return quick.where(may_follow, ids[..., before : before + count], -1)

    def best_end(self, forced: Any, logits: Any) -> Any:
        """Return `forced` (...) with each EOS id replaced by the one with the highest logit."""
        if len(self.eos_ids) == 1:
            return forced
        of_ends = quick.concatenate([logits[..., i : i + 1] for i in self.eos_ids], axis=-1)
        ends = keras.ops.convert_to_tensor(self.eos_ids, dtype="int32")
        best = quick.take(ends, quick.argmax(of_ends, axis=-1), axis=0)
        return quick.where(self.is_end(forced), best, forced)


def with_token(seen: Any, token: Any) -> Any:
    """Return `seen` (..., V), boolean, in which `token` (...) is marked, too."""
    ids_V = quick.arange(quick.shape(seen)[-1], dtype="int32")
    return seen | (ids_V == quick.expand_dims(token, -1))


def pick(x_BC: Any, choice_BK: Any) -> Any:
    """Return the chosen candidates of each row, numbers or sequences: (B, K, ...)."""
    more = tuple(range(2, len(x_BC.shape)))
    return gather(x_BC, quick.expand_dims(choice_BK, more) if more else choice_BK, axis=1)
