"""A constraint that makes a search write given phrases, each in one of its forms."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import gather, quick

_NONE = -1  # no token, no phrase
_MULTIPLE = 4  # numbers of forms and tokens are multiples of it: few shapes are compiled


@dataclass(frozen=True)
class Phrases:
    """Constraint to sentences that contain phrases (Hokamp and Liu 2017; Post and Vilar 2018).

    A phrase is met when all tokens of one of its forms have been taken in succession and the next
    token does not continue the last word. A sentence cannot end before all are met, and near the
    limit only tokens of phrases are taken. The constraint needs beam search, which reserves slots
    for hypotheses that have met more phrase tokens than others (`decoding.banks`).

    The state holds, per hypothesis, for F forms of at most N tokens:

    - `tokens` (F x N), padded with -1, and `phrase` (F), the number of each form's phrase;
    - `least` (F): result of the method `least` for a phrase, at its first form; elsewhere 0;
    - `matched` (F): number of the form's first tokens that the last tokens spell;
    - `met` (F): whether the phrase is met;
    - `steps`: tokens left until the limit, EOS included.

    Args:
        eos_ids: Tokens that end a sentence.
        vocabulary: Identifier of the vocabulary, such as a tokenizer's fingerprint.
        continues: (V,) boolean, whether each token continues the previous word.
    """

    eos_ids: tuple[int, ...]
    vocabulary: str
    continues: np.ndarray = field(compare=False, repr=False)

    def start(
        self, phrases: Sequence[Sequence[Sequence[Sequence[int]]]], limits: Sequence[int]
    ) -> dict[str, np.ndarray]:
        """Return the state before the first token.

        Args:
            phrases: The phrases of each row, each a list of forms, each a list of ids.
            limits: Maximum tokens of each row, EOS included.

        Raises:
            ValueError: If the phrases of a row and EOS need more tokens than its limit.
        """
        flat = [[(i, x) for i, forms in enumerate(row) for x in forms] for row in phrases]
        num_forms = _rounded(max(map(len, flat), default=1))
        longest = max((len(ids) for row in flat for _, ids in row), default=1)
        length, rows = _rounded(longest), len(flat)
        tokens = np.full((rows, num_forms, length), _NONE, "int32")
        phrase = np.full((rows, num_forms), _NONE, "int32")
        least = np.zeros((rows, num_forms), "int32")
        for row, forms in enumerate(flat):
            for j, (number, ids) in enumerate(forms):
                tokens[row, j, : len(ids)], phrase[row, j] = ids, number
                if j == 0 or forms[j - 1][0] != number:
                    least[row, j] = self.least(phrases[row][number])
            if least[row].sum() >= limits[row]:
                raise ValueError(
                    f"phrases must fit into {limits[row]} tokens with EOS, the longest "
                    f"translation, got phrases of {least[row].sum()} tokens"
                )
        return {
            "tokens": tokens.reshape(rows, -1),
            "phrase": phrase,
            "least": least,
            "matched": np.zeros_like(phrase),
            "met": phrase == _NONE,
            "steps": np.asarray(limits, "int32"),
        }

    def least(self, forms: Sequence[Sequence[int]]) -> int:
        """Return the number of tokens of a phrase's shortest form; `forms` are lists of ids.

        Forms that continue the previous word count only if there are no others.
        """
        after_words = [x for x in forms if not self.continues[x[0]]]
        return min(map(len, after_words or forms))

    def proposals(self, state: dict[str, Any]) -> Any:
        """Return the token that each form needs next (..., F); -1 if it needs none.

        Near the limit these are only tokens after which all phrases still fit.
        """
        next_F, needed_F = self._next(state), self._needed(state)
        goes_on_F = self._goes_on(quick.maximum(next_F, 0))
        # A token that continues a word breaks the phrases that end with this word.
        others = ops.where(goes_on_F, *(_total(x, state) for x in (self._unmet(state), needed_F)))
        rest_F = self._length(state) - state["matched"]
        least_F = ops.max(_by_phrase(state["least"], state["phrase"]), axis=-1)
        has_room_F = rest_F + others - least_F < ops.expand_dims(state["steps"], -1)
        return ops.where(needed_F & (has_room_F | ~self._is_tight(state)), next_F, _NONE)

    def fits(self, state: dict[str, Any], token_ids: Any, proposed: Any) -> Any:
        """Return which tokens (..., C) may be taken; `proposed` tells which are proposals."""
        is_end = functools.reduce(operator.or_, (ops.equal(token_ids, x) for x in self.eos_ids))
        complete = ops.expand_dims(self.is_complete(state), -1)
        tight_fits = ops.where(complete, ~self._goes_on(token_ids), proposed)
        return ops.where(self._is_tight(state), tight_fits, complete | ~is_end)

    def progress(self, state: dict[str, Any], token_ids: Any) -> Any:
        """Return the number of phrase tokens that are met after each of the tokens (..., C)."""
        wide = {name: ops.expand_dims(x, len(token_ids.shape) - 1) for name, x in state.items()}
        after = self.advance(wide, token_ids)
        met = ops.sum(ops.where(after["met"], after["least"], 0), axis=-1)
        partial = ops.max(ops.where(after["met"], 0, after["matched"]), axis=-1)
        return met + partial

    def is_complete(self, state: dict[str, Any]) -> Any:
        """Return whether a sentence may end (...)."""
        return ops.logical_not(ops.any(self._needed(state), axis=-1))

    def advance(self, state: dict[str, Any], token_ids: Any) -> dict[str, Any]:
        """Return the state after tokens (...)."""
        token = ops.expand_dims(token_ids, -1)
        is_next_F = ops.equal(token, self._next(state))
        again_F = ops.where(ops.equal(token, self._tokens(state)[..., 0]), 1, 0)
        now_F = self._is_whole(state) & ~self._goes_on(token)
        met_F = state["met"] | ops.any(_by_phrase(now_F, state["phrase"]), axis=-1)
        matched_F = ops.where(is_next_F, state["matched"] + 1, again_F)
        matched_F = ops.cast(ops.where(met_F, 0, matched_F), "int32")
        fixed = {name: state[name] for name in ("tokens", "phrase", "least")}
        return {**fixed, "matched": matched_F, "met": met_F, "steps": state["steps"] - 1}

    def _goes_on(self, token_ids):
        """Return which tokens continue the previous word."""
        table_V = ops.convert_to_tensor(self.continues, dtype="bool")
        return quick.take(table_V, token_ids, axis=0)

    def _tokens(self, state):
        shape = quick.shape(state["phrase"])
        longest = quick.shape(state["tokens"])[-1] // shape[-1]
        return quick.reshape(state["tokens"], (*shape, longest))

    def _length(self, state):
        return ops.sum(ops.cast(self._tokens(state) != _NONE, "int32"), axis=-1)

    def _next(self, state):
        tokens_FN = self._tokens(state)
        longest = quick.shape(tokens_FN)[-1]
        index_F1 = quick.expand_dims(quick.minimum(state["matched"], longest - 1), -1)
        next_F = gather(tokens_FN, index_F1, axis=len(tokens_FN.shape) - 1)[..., 0]
        return ops.where(state["matched"] < longest, next_F, _NONE)

    def _is_whole(self, state):
        """Return which forms the last tokens spell completely (..., F).

        The last word of such a form may still continue.
        """
        return (state["matched"] > 0) & ops.equal(state["matched"], self._length(state))

    def _unmet(self, state):
        return ops.logical_not(state["met"])

    def _needed(self, state):
        """Return which forms belong to phrases that are not met and have no whole form yet."""
        whole_F = ops.any(_by_phrase(self._is_whole(state), state["phrase"]), axis=-1)
        return self._unmet(state) & ~whole_F

    def _is_tight(self, state):
        """Return whether all tokens until the limit are needed for phrases (..., 1)."""
        return ops.expand_dims(state["steps"], -1) - 1 <= _total(self._unmet(state), state)


def _total(flags_F, state):
    """Return the sum of `least` of the flagged forms (..., 1)."""
    return ops.sum(ops.where(flags_F, state["least"], 0), axis=-1, keepdims=True)


def _by_phrase(values_F, phrase_F):
    """Return, for each form, the values of the forms of its phrase (..., F, F); else 0."""
    same_FF = ops.equal(ops.expand_dims(phrase_F, -1), ops.expand_dims(phrase_F, -2))
    values_1F = ops.expand_dims(values_F, -2)
    return ops.where(same_FF, values_1F, ops.zeros_like(values_1F))


def _rounded(number):
    return -(-max(number, 1) // _MULTIPLE) * _MULTIPLE
