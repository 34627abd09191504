"""A search in its parts, each a function of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keras_transformer.backend import row_loop


def whole_search(begin: Callable[..., SearchLoop]) -> Callable[..., tuple[Any, Any]]:
    """Return the function of the same arguments that runs the loop which `begin` returns."""

    @functools.wraps(begin)  # TensorFlow reads its signature
    def search(*arguments, **named):
        return begin(*arguments, **named).run()

    return search


@dataclass(frozen=True)
class SearchLoop:
    """A search in three parts: its state before the loop, a turn of the loop, and its result.

    Args:
        first: Which rows are done, what is found, and what only the loop needs, before the loop.
        turn: The `body` of `backend.row_loop`. It depends on its arguments and their shapes alone,
            so that the turn of one search can take the place of that of another one with the same
            options.
        result: Function from what is found to ids (B, K, L) and scores (B, K). It depends on its
            argument alone.
        length: L, the length of the ids.
        index: Position of the first token, which is found before the loop.
    """

    first: tuple[Any, Any, Any]
    turn: Callable[[Any, Any, Any, Any], tuple[Any, Any, Any]]
    result: Callable[[Any], tuple[Any, Any]]
    length: Any
    index: Any = 1

    def run(self) -> tuple[Any, Any]:
        """Run the loop; return ids (B, K, L) and scores (B, K), best first."""
        return self.result(row_loop(self.turn, self.length, *self.first))
