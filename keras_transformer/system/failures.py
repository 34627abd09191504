"""Errors that the user of a command can fix, and their messages."""

from __future__ import annotations

BAD_INPUT = (ValueError, OSError, ImportError, NotImplementedError)


def in_one_line(error: BaseException) -> str:
    """Return the error's message on one line, or the name of its class if it has none."""
    return " ".join(str(error).split()) or type(error).__name__
