"""What a command says of errors that its user can mend."""

from __future__ import annotations

BAD_INPUT = (ValueError, OSError, ImportError)


def in_one_line(error: BaseException) -> str:
    """The error's message; its class where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
