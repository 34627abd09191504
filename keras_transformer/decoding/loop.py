"""A search as three parts: its initial state, the body of its loop, its result.

The body and the result are pure functions of tensors, so they can be compiled once and reused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keras_transformer.backend import row_loop


def whole_search(begin: Callable[..., SearchLoop]) -> Callable[..., tuple[Any, Any]]:
    """Return a function with the arguments of `begin` that runs its loop: a complete search."""

    @functools.wraps(begin)  # TensorFlow reads its signature
    def search(*arguments, **named):
        return begin(*arguments, **named).run()

    return search


@dataclass(frozen=True)
class SearchLoop:
    """A search in three parts: state before the loop, one iteration of the loop, and result.

    Args:
        first: State before the loop: which rows are done, the results so far, and what only the
            loop needs.
        turn: The `turn` of `backend.row_loop`. It depends only on its arguments and their shapes:
            all searches with the same options can use the turn of one of them.
        result: Function from the results to ids (B, K, L) and scores (B, K). It depends only on
            its argument.
        length: L, the length of the ids.
        index: Position of the first token, which is chosen before the loop.
    """

    first: tuple[Any, Any, Any]
    turn: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]
    result: Callable[[Any], tuple[Any, Any]]
    length: Any
    index: Any = 1

    def run(self) -> tuple[Any, Any]:
        """Run the loop; return ids (B, K, L) and scores (B, K), best first."""
        return self.result(row_loop(self.turn, self.length, *self.first))
