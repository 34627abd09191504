"""Translated files, kept in memory for an hour."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple


class KeptFile(NamedTuple):
    """A file: its name, its content, and the time at which it expires, in seconds of the clock."""

    name: str
    content: bytes
    expires: float


class KeptFiles:
    """Translated files, found by a token and dropped after some time.

    They are in memory, so that no disk fills up, and nothing is left behind when the process ends.

    Args:
        most_bytes: Maximum size of all files: for a new file, the oldest are dropped. A single file
            may be larger.
        seconds: Seconds that a file is kept.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self, most_bytes: int, seconds: float = 3600, clock: Callable[[], float] = time.monotonic
    ):
        self.most_bytes, self.seconds, self.size = most_bytes, seconds, 0
        self._clock = clock
        self._files: dict[str, KeptFile] = {}  # oldest first

    def add(self, name: str, content: bytes) -> str:
        """Keep a file, and return the token to find it by."""
        self.drop(len(content))
        token = secrets.token_urlsafe(16)
        self._files[token] = KeptFile(name, content, self._clock() + self.seconds)
        self.size += len(content)
        return token

    def drop(self, room: int = 0) -> None:
        """Drop expired files, and then the oldest ones until `room` more bytes fit."""
        for token, file in [*self._files.items()]:
            if file.expires > self._clock() and self.size + room <= self.most_bytes:
                break
            self.size -= len(file.content)
            del self._files[token]

    def find(self, token: str, name: str) -> bytes | None:
        """Return a file's content; None if the token has no file of this name, or it is expired."""
        file = self._files.get(token)
        return file.content if file and file.name == name and file.expires > self._clock() else None
