"""Limits of a server: body size, request rate, API key, pages of other hosts."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

import limits
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.serving.errors import error_body
from keras_transformer.serving.settings import Settings

FILES = ("/translate_file", "/v1/see", "/v1/audio/transcriptions")
TEXTS = 10  # the longest texts of a request
ROOM = 65_536  # bytes allowed in a body besides its texts


class BodyLimit:
    """ASGI middleware that stops reading a body that is too long, and answers 413.

    The limit is that of `TEXTS` texts of 12 bytes per character: a JSON escape has six bytes,
    and a character beyond the basic plane has two escapes.

    Args:
        app: The ASGI application to wrap.
        settings: Settings of the server.
    """

    def __init__(self, app: ASGIApp, settings: Settings):
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        is_file = scope["path"].removeprefix(scope.get("root_path", "")) in FILES
        limit = self.settings.most_bytes if is_file else TEXTS * 12 * self.settings.most_characters
        read = 0

        async def receive_some():
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit + ROOM:
                raise HTTPException(413, f"a body must have at most {limit + ROOM} bytes")
            return message

        return await self.app(scope, receive_some, send)


class Guard:
    """Checks the API key, the rate and the origin of requests.

    Args:
        settings: Settings of the server.
    """

    def __init__(self, settings: Settings):
        self._key, self._origins = settings.api_key, settings.origins
        self._rate = None
        if settings.requests_per_minute:
            self._rate = limits.RateLimitItemPerMinute(settings.requests_per_minute)
            storage = limits.storage.MemoryStorage()
            self._limiter = limits.strategies.MovingWindowRateLimiter(storage)

    def admit(self, request: Request) -> None:
        """Raise HTTPException if a request with a body must not be read.

        Raises:
            HTTPException: 429 if there were too many requests, 403 for a form that a page of
                another host sends, for which browsers do not ask.
        """
        address = request.client.host if request.client else ""
        if self._rate and not self._limiter.hit(self._rate, address):
            message = f"more than {self._rate.amount} requests per minute: slow down"
            raise HTTPException(429, message, {"Retry-After": "60"})
        origin = request.headers.get("origin")
        if origin and not {origin, "*"} & {*self._origins} and not _is_own(request, origin):
            raise HTTPException(403, f"pages of {origin[:80]} may not use this server")

    def check(self, request: Request, key: str | None = None) -> None:
        """Raise HTTPException if a request has not the API key.

        Args:
            request: The request.
            key: Its field `api_key`; if empty, its header `Authorization: Bearer` is used.

        Raises:
            HTTPException: 403 if the key is wrong.
        """
        if self._key is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        given = key or (given if kind.lower() == "bearer" else "")
        if not secrets.compare_digest(given.encode(), self._key.encode()):
            raise HTTPException(403, "api_key is missing or wrong")


def _is_own(request, origin):
    """Whether a request comes from the server's own page, also behind a proxy."""
    site = request.headers.get("sec-fetch-site")
    if site:
        return site == "same-origin"
    return urlsplit(origin).netloc == request.headers.get("host")


class Admission:
    """ASGI middleware that answers requests which must not be read, see `Guard.admit`.

    Args:
        app: The ASGI application to wrap.
        guard: What decides.
    """

    def __init__(self, app: ASGIApp, guard: Guard):
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] == "http" and scope["method"] == "POST":
            try:
                self.guard.admit(Request(scope))
            except HTTPException as error:
                body = error_body(scope, error.status_code, error.detail)
                response = JSONResponse(body, error.status_code, error.headers)
                return await response(scope, receive, send)
        return await self.app(scope, receive, send)
