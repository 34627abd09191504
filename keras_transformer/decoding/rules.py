"""The rules of a search: which tokens may be taken at each position, and how texts are scored."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras

from keras_transformer.backend import gather, quick
from keras_transformer.decoding.phrases import Phrases
from keras_transformer.search import SearchOptions

IMPOSSIBLE = -1e9  # log-probability of a forbidden token; finite, so that sums are not NaN
FREE, NOT_EOS = -1, -2  # in `forced`: any token may be taken; any but EOS


def length_penalty_factor(length: Any, length_penalty: float, scoring: str = "wu") -> Any:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14); |Y| counts EOS.

    Args:
        length: |Y|, a number or a tensor.
        length_penalty: Alpha, at least 0.
        scoring: "wu"; or "transformers", for lp(Y) = |Y|^alpha.
    """
    if hasattr(length, "dtype"):
        length = quick.cast(length, "float32")
    return (length if scoring == "transformers" else (5.0 + length) / 6.0) ** length_penalty


def penalize_repetition(logits: Any, seen: Any, penalty: Any) -> Any:
    """Return logits (..., V) that make the tokens seen earlier (..., V) less probable.

    Positive logits are divided by `penalty` and negative ones multiplied by it, as in
    `transformers`; Keskar et al. 2019, section 4.1, divide all, which raises negative logits.
    """
    less = quick.where(logits > 0, logits / penalty, logits * penalty)
    return quick.where(seen, less, logits)


@dataclass(frozen=True)
class Rules:
    """Rules that greedy and beam search share; the arguments are those of `greedy_loop`."""

    search: SearchOptions
    eos_ids: Sequence[int]
    pad_id: int = 0
    banned_ids: Sequence[int] = ()
    constraint: Any = None

    @functools.cached_property
    def never(self) -> tuple[int, ...]:
        """Padding and the banned ids, except EOS ids: Whisper pads with its EOS."""
        return tuple(one for one in (self.pad_id, *self.banned_ids) if one not in self.eos_ids)

    @property
    def phrases(self) -> Phrases | None:
        """The constraint, if it is one to phrases."""
        return self.constraint if isinstance(self.constraint, Phrases) else None

    def is_end(self, token_ids: Any) -> Any:
        """Return which of the tokens are EOS ids."""
        return functools.reduce(operator.or_, (token_ids == one for one in self.eos_ids))

    def penalty(self, length: Any) -> Any:
        """Return the divisor of the summed log-probabilities of a text of this length."""
        return length_penalty_factor(length, self.search.length_penalty, self.search.scoring)

    def forced(self, length: Any, max_lengths_B: Any, prefix_BP: Any) -> Any:
        """Return the token that each row must take at each position: (B, L).

        A token of the row's prefix, or EOS at its limit; elsewhere `NOT_EOS` up to the minimum
        length, then `FREE`.
        """
        places_L = quick.arange(length, dtype="int32")
        free_L = quick.where(places_L < self.search.min_length, NOT_EOS, FREE)
        end = self.eos_ids[0]
        if prefix_BP is None:
            return quick.where(places_L + 1 >= max_lengths_B[:, None], end, free_L)
        is_token_BP = quick.cast(quick.not_equal(prefix_BP, self.pad_id), "int32")
        limits_B = quick.maximum(max_lengths_B, quick.sum(is_token_BP, axis=1) + 1)
        forced_BL = quick.where(places_L + 1 >= limits_B[:, None], end, free_L)
        rows, prefix_length = quick.shape(prefix_BP)
        rest = quick.full((rows, length - prefix_length), self.pad_id, dtype="int32")
        prefix_BL = quick.concatenate([quick.cast(prefix_BP, "int32"), rest], axis=1)
        return quick.where(prefix_BL == self.pad_id, forced_BL, prefix_BL)

    def seen(self, logits_BV: Any, seen_BV: Any) -> Any:
        """Return which tokens precede the search (B, V); None without a repetition penalty.

        Args:
            logits_BV: The first logits.
            seen_BV: Which tokens are in the prompt; None: there is no prompt.
        """
        if self.search.repetition_penalty == 1.0:
            return None
        return quick.cast(quick.zeros_like(logits_BV), "bool") if seen_BV is None else seen_BV

    def penalized(self, logits: Any, seen: Any) -> Any:
        """Return the logits (..., V) after the repetition penalty, which is part of the model.

        Log-probabilities are those of these logits, as in the paper, so they count in scores.
        """
        logits = quick.cast(logits, "float32")
        return penalize_repetition(logits, seen, self.search.repetition_penalty)

    def repeats(self, ids_L: Any, i: Any) -> Any:
        """Return the tokens (..., L + 1) that would repeat a sequence at position i; -1 for none.

        Args:
            ids_L: The tokens so far (..., L).
            i: How many there are.
        """
        size = self.search.no_repeat_ngram_size
        before = size - 1
        count = quick.shape(ids_L)[-1] + 1
        none = quick.zeros_like(ids_L[..., :1]) - 1
        ids = quick.concatenate([ids_L, *[none] * size], axis=-1)
        may_follow = quick.arange(count, dtype="int32") + before < i
        places = quick.arange(count + before, dtype="int32")
        for k in range(before):
            last = quick.sum(quick.where(places == i - before + k, ids, 0), axis=-1)
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
    """Return which tokens have been seen (..., V), with `token` (...) among them."""
    places_V = quick.arange(quick.shape(seen)[-1], dtype="int32")
    return seen | (places_V == quick.expand_dims(token, -1))


def pick(x_BC: Any, choice_BK: Any) -> Any:
    """Return the chosen candidates of each row, numbers or sequences: (B, K, ...)."""
    more = tuple(range(2, len(x_BC.shape)))
    return gather(x_BC, quick.expand_dims(choice_BK, more) if more else choice_BK, axis=1)
