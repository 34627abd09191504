"""A constraint that limits a search to well-formed trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keras import ops


@dataclass(frozen=True)
class TreeConstraint:
    """Constraint to one tree over as many words as the source has.

    The output is a line of `data.trees.linearize`: brackets balance, no bracket is empty, the first
    is closed last, and EOS follows. Each allowed beginning can be completed within the limit. The
    state holds int32 tensors with one number per hypothesis:

    - `depth`: open brackets;
    - `words`: words still to come;
    - `opened`: brackets opened since the last word or closing bracket;
    - `steps`: tokens left until the limit, EOS included.

    Args:
        open_ids: Tokens that open a bracket, one per label.
        close_id: Token that closes the last open bracket.
        word_ids: Tokens that represent a word: one for all words, or one per tag.
        eos_id: Token that ends the line.
        max_opened: Maximum brackets opened in succession, at least 1; it keeps a poorly trained
            model from opening brackets up to the limit.
    """

    open_ids: tuple[int, ...]
    close_id: int
    word_ids: tuple[int, ...]
    eos_id: int
    max_opened: int = 8

    @classmethod
    def of(cls, symbols: Sequence[str], **options: Any) -> TreeConstraint:
        """Return the constraint for a vocabulary of linearized trees.

        Args:
            symbols: Symbols in the order of their ids: labels such as "(NP"; ")"; "</s>"; other
                symbols in angle brackets, which are never allowed; all others stand for words.
            options: Other fields, such as `max_opened`.

        Raises:
            ValueError: If a label, a word, ")" or "</s>" is missing.
        """
        symbols = list(symbols)
        opens, words = [], []
        for i, symbol in enumerate(symbols):
            if symbol.startswith("("):
                opens.append(i)
            elif not symbol.startswith((")", "<")):
                words.append(i)
        if not opens or not words or ")" not in symbols or "</s>" not in symbols:
            accepted = 'labels such as "(NP", symbols for words, ")" and "</s>"'
            raise ValueError(f"symbols must have {accepted}, got {symbols}")
        close_id, eos_id = symbols.index(")"), symbols.index("</s>")
        return cls(tuple(opens), close_id, tuple(words), eos_id, **options)

    def start(self, texts: Sequence[str], limits: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the state before the first token.

        Args:
            texts: Source texts, words separated by spaces.
            limits: Maximum tokens of each text's tree, EOS included.

        Raises:
            ValueError: If a text has no word, or a tree over its words exceeds the limit.
        """
        words = np.array([len(text.split()) for text in texts], "int32")
        steps = np.array(limits, "int32")
        for text, number, most in zip(texts, words, steps, strict=True):
            if not 1 <= number <= most - 3:  # besides the words: two brackets and EOS
                raise ValueError(
                    f"texts must have from 1 to {most - 3} words for trees of at most {most} "
                    f"tokens, got {number} in {text!r:.60}"
                )
        zeros = np.zeros_like(words)
        return {"depth": zeros, "words": words, "opened": zeros, "steps": steps}

    def allowed(self, state: dict[str, Any], vocab_size: int) -> Any:
        """Return which tokens may follow: (..., V) boolean."""
        depth, words, opened, steps = (
            ops.expand_dims(state[name], -1) for name in ("depth", "words", "opened", "steps")
        )
        ids_V = ops.arange(vocab_size, dtype="int32")
        # One more bracket needs steps for itself, all words, all closing brackets and EOS.
        has_room = (opened < self.max_opened) & (steps >= words + depth + 3)
        may_open = (words > 0) & has_room
        may_close = (depth > 0) & (opened == 0) & ((depth > 1) | (words == 0))
        return (
            (_among(ids_V, self.open_ids) & may_open)
            | ((ids_V == self.close_id) & may_close)
            | (_among(ids_V, self.word_ids) & (words > 0) & (depth > 0))
            | ((ids_V == self.eos_id) & (words == 0) & (depth == 0))
        )

    def advance(self, state: dict[str, Any], token_ids: Any) -> dict[str, Any]:
        """Return the state after allowed tokens (...)."""
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
