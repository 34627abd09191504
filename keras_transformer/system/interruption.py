"""Interruption of work that nobody waits for any longer, between two of its steps."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

_OF_THREAD = threading.local()


class GivenUpError(Exception):
    """Raised by `check` when nobody waits for the work of this thread any longer."""


@contextlib.contextmanager
def given_up_if(nobody_waits: Callable[[], bool]) -> Iterator[None]:
    """Let `check` raise in the body, in this thread, once `nobody_waits` returns True."""
    before = getattr(_OF_THREAD, "nobody_waits", None)
    _OF_THREAD.nobody_waits = nobody_waits
    try:
        yield
    finally:
        _OF_THREAD.nobody_waits = before


def inherited(function: Callable) -> Callable:
    """Return `function` for another thread, where `check` answers as in the caller's."""
    nobody_waits = getattr(_OF_THREAD, "nobody_waits", None)
    if nobody_waits is None:
        return function

    def call(*arguments: Any) -> Any:
        with given_up_if(nobody_waits):
            return function(*arguments)

    return call


def check() -> None:
    """Raise GivenUpError if nobody waits for the work of this thread. Call it in long loops.

    Raises:
        GivenUpError: If nobody waits for the work.
    """
    nobody_waits = getattr(_OF_THREAD, "nobody_waits", None)
    if nobody_waits is not None and nobody_waits():
        raise GivenUpError
