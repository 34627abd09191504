"""A constraint under which a search finds well-formed trees and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops


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
        word_ids: tokens that stand for a word: one for all, or one for each tag.
        eos_id: the token that ends.
        max_opened: most brackets opened one after another, at least 1: lest a model that has
            learnt little open them to the limit.
    """

    open_ids: tuple[int, ...]
    close_id: int
    word_ids: tuple[int, ...]
    eos_id: int
    max_opened: int = 8

    @classmethod
    def of(cls, symbols: Sequence[str], **options: Any) -> TreeConstraint:
        """The constraint for a vocabulary of such lines.

        Args:
            symbols: in the order of their ids: "(NP" and the like, ")", "</s>", others in angle
                brackets, which are never allowed, and all the rest for words.
            options: such as `max_opened`.

        Raises:
            ValueError: if one of them is missing.
        """
        symbols = list(symbols)
        opens, words = [], []
        for i, symbol in enumerate(symbols):
            if symbol.startswith("("):
                opens.append(i)
            elif not symbol.startswith((")", "<")):
                words.append(i)
        if not opens or not words or ")" not in symbols or "</s>" not in symbols:
            accepted = 'some such as "(NP", some for words, ")" and "</s>"'
            raise ValueError(f"symbols must be {accepted}, got {symbols}")
        close_id, eos_id = symbols.index(")"), symbols.index("</s>")
        return cls(tuple(opens), close_id, tuple(words), eos_id, **options)

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
            (_among(ids_V, self.open_ids) & may_open)
            | ((ids_V == self.close_id) & may_close)
            | (_among(ids_V, self.word_ids) & (words > 0) & (depth > 0))
            | ((ids_V == self.eos_id) & (words == 0) & (depth == 0))
        )

    def advance(self, state: dict[str, Any], token_ids: Any) -> dict[str, Any]:
        """The state after a token (...) that was allowed."""
        opens = ops.cast(_among(token_ids, self.open_ids), "int32")
        words = ops.cast(_among(token_ids, self.word_ids), "int32")
        closes = ops.cast(token_ids == self.close_id, "int32")
        return {
            "depth": state["depth"] + opens - closes,
            "words": state["words"] - words,
            "opened": (state["opened"] + opens) * opens,
            "steps": state["steps"] - 1,
        }


def _among(token_ids, ids):
    return ops.any(ops.equal(ops.expand_dims(token_ids, -1), np.array(ids, "int32")), axis=-1)
