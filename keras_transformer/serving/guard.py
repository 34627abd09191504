"""Limits of a server: sizes, rates, an API key."""

from __future__ import annotations

import secrets

import limits
from fastapi import HTTPException, Request

from keras_transformer.serving.settings import Settings

FILES = "/translate_file"
ROOM = 65_536  # bytes of a body beside its texts


class BodyLimit:
    """ASGI middleware that stops reading a body that is too long, and answers 413.

    Args:
        app: what it stands before.
        settings: of the server. A character has at most six bytes in JSON's escapes, two escapes
            beyond the basic plane.
    """

    def __init__(self, app, settings: Settings):
        self.app, self.settings = app, settings

    async def __call__(self, scope, receive, send):
        """Handles a connection."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        is_file = scope["path"].removeprefix(scope.get("root_path", "")) == FILES
        limit = self.settings.most_bytes if is_file else 12 * self.settings.most_characters
        read = 0

        async def receive_some():
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit + ROOM:
                raise HTTPException(413, f"a body may have {limit + ROOM} bytes")
            return message

        return await self.app(scope, receive_some, send)


class Guard:
    """Checks the key and the rate of requests.

    Args:
        settings: of the server.
    """

    def __init__(self, settings: Settings):
        self._key = settings.api_key
        self._rate = None
        if settings.requests_per_minute:
            self._rate = limits.RateLimitItemPerMinute(settings.requests_per_minute)
            storage = limits.storage.MemoryStorage()
            self._limiter = limits.strategies.MovingWindowRateLimiter(storage)

    def check(self, request: Request, key: str | None = None) -> None:
        """Lets a request pass.

        Args:
            request: it.
            key: what it gives as `api_key`; else its header `Authorization: Bearer` counts.

        Raises:
            HTTPException: 403 for another key, 429 if there were too many.
        """
        address = request.client.host if request.client else ""
        if self._rate and not self._limiter.hit(self._rate, address):
            wait = {"Retry-After": "60"}
            message = f"more than {self._rate.amount} requests in a minute: slow down"
            raise HTTPException(429, message, wait)
        if self._key is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        given = key or (given if kind.lower() == "bearer" else "")
        if not secrets.compare_digest(given.encode(), self._key.encode()):
            raise HTTPException(403, "api_key must be given, and be this server's")
