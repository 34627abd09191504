"""A constraint under which a search finds well-formed trees and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.ops import quick as ops


@dataclass(frozen=True)
class TreeConstraint:
    """Lines of `data.trees.linearize` that are one tree over as many words as the source has.

    What is begun can always be ended within the limit: brackets balance, none is empty, the first
    is closed last and EOS follows. The state says all that this takes, int32, a number for each
    hypothesis:

    - `depth`: brackets that are open;
    - `words`: words that are to come;
    - `opened`: brackets opened since the last word or closing;
    - `steps`: tokens until the limit, EOS included.

    Args:
        open_ids: tokens that open a bracket, one for each label.
        close_id: the token that closes the last one.
        word_id: the token that stands for a word.
        eos_id: the token that ends.
        max_opened: most brackets opened one after another, at least 1: lest a model that has
            learnt little open them to the limit.
    """

    open_ids: tuple[int, ...]
    close_id: int
    word_id: int
    eos_id: int
    max_opened: int = 8

    @classmethod
    def of(cls, symbols: Sequence[str], **options: Any) -> TreeConstraint:
        """The constraint for a vocabulary: "(NP" and the like, ")", "XX" and "</s>".

        Args:
            symbols: in the order of their ids; any others are never allowed.
            options: such as `max_opened`.

        Raises:
            ValueError: if one of them is missing.
        """
        opens = tuple(i for i, x in enumerate(symbols) if x.startswith("("))
        missing = {")", "XX", "</s>"} - set(symbols)
        if missing or not opens:
            accepted = 'one or more such as "(NP", and ")", "XX" and "</s>"'
            raise ValueError(f"symbols must be {accepted}, got {list(symbols)}")
        return cls(opens, *(list(symbols).index(x) for x in (")", "XX", "</s>")), **options)

    def start(self, texts: Sequence[str], limits: Sequence[int]) -> dict[str, np.ndarray]:
        """The state before the first token.

        Args:
            texts: words with spaces between them.
            limits: most tokens of each text's tree, EOS included.

        Raises:
            ValueError: if a text has no word, or a tree over its words does not fit.
        """
        words = np.array([len(text.split()) for text in texts], "int32")
        steps = np.array(limits, "int32")
        for text, number, most in zip(texts, words, steps, strict=True):
            if not 1 <= number <= most - 3:  # besides words: two brackets and EOS
                raise ValueError(
                    f"texts must have from 1 to {most - 3} words for trees of at most {most} "
                    f"tokens, got {number} in {text!r:.60}"
                )
        zeros = np.zeros_like(words)
        return {"depth": zeros, "words": words, "opened": zeros, "steps": steps}

    def allowed(self, state: dict[str, Any], vocab_size: int) -> Any:
        """The tokens (..., V) that may follow, boolean."""
        depth, words, opened, steps = (
            ops.expand_dims(state[name], -1) for name in ("depth", "words", "opened", "steps")
        )
        ids_V = ops.arange(vocab_size, dtype="int32")
        # A bracket more needs steps for itself, all words, all closings and EOS.
        fits = (opened < self.max_opened) & (steps >= words + depth + 3)
        may_open = (words > 0) & fits
        may_close = (depth > 0) & (opened == 0) & ((depth > 1) | (words == 0))
        return (
            (self._opens(ids_V) & may_open)
            | ((ids_V == self.close_id) & may_close)
            | ((ids_V == self.word_id) & (words > 0) & (depth > 0))
            | ((ids_V == self.eos_id) & (words == 0) & (depth == 0))
        )

    def advance(self, state: dict[str, Any], token_ids: Any) -> dict[str, Any]:
        """The state after a token (...) that was allowed."""
        opens = ops.cast(self._opens(token_ids), "int32")
        closes = ops.cast(token_ids == self.close_id, "int32")
        return {
            "depth": state["depth"] + opens - closes,
            "words": state["words"] - ops.cast(token_ids == self.word_id, "int32"),
            "opened": (state["opened"] + opens) * opens,
            "steps": state["steps"] - 1,
        }

    def _opens(self, token_ids):
        found = token_ids == self.open_ids[0]
        for open_id in self.open_ids[1:]:
            found = found | (token_ids == open_id)
        return found
