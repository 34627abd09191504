"""Messages for errors that the user of a command can fix."""

from __future__ import annotations

BAD_INPUT = (ValueError, OSError, ImportError)


def in_one_line(error: BaseException) -> str:
    """The error's message; its class where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
