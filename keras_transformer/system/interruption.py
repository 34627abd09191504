"""Interruption of work whose result nobody waits for any longer, at its next `check`."""

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
    """Let `check` raise in the body, in this thread, if `nobody_waits()` is true."""
    before = getattr(_OF_THREAD, "nobody_waits", None)
    _OF_THREAD.nobody_waits = nobody_waits
    try:
        yield
    finally:
        _OF_THREAD.nobody_waits = before


def inherited(function: Callable) -> Callable:
    """Return `function` for another thread, with the condition of `check` in this thread."""
    nobody_waits = getattr(_OF_THREAD, "nobody_waits", None)
    if nobody_waits is None:
        return function

    def call(*arguments: Any) -> Any:
        with given_up_if(nobody_waits):
            return function(*arguments)

    return call


def check() -> None:
    """Stop the work of this thread if nobody waits for it; call this in long loops.

    Raises:
        GivenUpError: If the condition of `given_up_if` is true.
    """
    nobody_waits = getattr(_OF_THREAD, "nobody_waits", None)
    if nobody_waits is not None and nobody_waits():
        raise GivenUpError
