"""Checks of requests: size of the body, rate, API key, host and origin."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import limits
from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.serving.errors import error_body
from keras_transformer.serving.keys import ANYBODY, Key, Keys
from keras_transformer.serving.monitoring import Metrics
from keras_transformer.serving.settings import Settings

# Paths to which files are sent.
FILES = ("/translate_file", "/v1/see", "/v1/audio/transcriptions", "/v2/document")
TEXTS = 10  # texts of `most_characters` that a body may hold
ROOM = 65_536  # bytes allowed in a body besides its texts


class Framing:
    """ASGI middleware that refuses Transfer-Encoding with Content-Length, or in HTTP/1.0.

    The length of such a body is ambiguous: a proxy that reads it differently takes a part of the
    body for another client's request (RFC 9112, section 6.1).

    Args:
        app: The ASGI application to wrap.
    """

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 400 if its length is ambiguous."""
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            is_known = b"content-length" not in names and scope["http_version"] != "1.0"
            if b"transfer-encoding" in names and not is_known:
                message = "Transfer-Encoding must come without Content-Length, and in HTTP/1.1"
                headers = {"Connection": "close"}
                response = JSONResponse(error_body(scope, 400, message), 400, headers)
                return await response(scope, receive, send)
        return await self.app(scope, receive, send)


def is_file(scope: Scope) -> bool:
    """Return whether the path of a request is one of `FILES`."""
    return scope["path"].removeprefix(scope.get("root_path", "")) in FILES


class BodyLimit:
    """ASGI middleware that stops reading a body that is too long, and answers 413.

    For the paths in `FILES` the limit is `most_bytes`. For others it is `TEXTS` texts of
    `most_characters` characters of 12 bytes: a JSON escape has six bytes, and a character beyond
    the basic plane has two escapes. Both limits have `ROOM` added.

    Args:
        app: The ASGI application to wrap.
        settings: Settings of the server.
    """

    def __init__(self, app: ASGIApp, settings: Settings):
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; raise HTTPException 413 where its body is read beyond the limit."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        texts = TEXTS * 12 * self.settings.most_characters
        limit = self.settings.most_bytes if is_file(scope) else texts
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
    """Checks of the API key, the rate, the host and the origin of requests.

    Args:
        settings: Settings of the server.
        metrics: Counters of refusals and of requests with each key.

    Raises:
        ValueError, OSError: If the file of keys cannot be read.
    """

    def __init__(self, settings: Settings, metrics: Metrics):
        self._settings, self._metrics = settings, metrics
        self._rate = settings.requests_per_minute
        self._limiter = limits.strategies.MovingWindowRateLimiter(limits.storage.MemoryStorage())
        self.reload()

    def reload(self) -> None:
        """Read the file of keys again.

        Raises:
            ValueError, OSError: If it cannot be read; the old keys then stay.
        """
        settings = self._settings
        keys = Keys.read(settings.keys_file) if settings.keys_file else Keys([])
        self._keys = keys.with_key(settings.api_key)

    @property
    def needs_key(self) -> bool:
        """Whether requests must send a key."""
        return bool(self._keys)

    def admit(self, request: Request) -> None:
        """Raise HTTPException if a request must not be read.

        Raises:
            HTTPException: 403 if a page of another host that is not allowed sends a POST request
                (browsers send forms to any host), or if the server has no keys and a request from
                its own machine names another host; 429 if there were too many POST requests from
                this address.
        """
        host = request.headers.get("host", "")
        if not self._keys and _is_local(request) and not self._is_known(host):
            accepted = "an address, localhost or the host of --public-url"
            raise HTTPException(403, f"the host must be {accepted}, got {host[:80]}")
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return
        address = request.client.host if request.client else ""
        self._count(self._rate, "address", address)
        origin, allowed = request.headers.get("origin"), {*self._settings.origins}
        if origin and not {origin, "*"} & allowed and not _is_own(request, origin):
            raise HTTPException(403, f"pages of {origin[:80]} may not use this server")

    def _is_known(self, host):
        """Return whether no web page can make this host name lead here (DNS rebinding)."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        own_host = self._settings.public_url and urlsplit(self._settings.public_url).hostname
        return "." not in name or name.endswith(".localhost") or name == own_host or bool(_ip(name))

    def check(self, request: Request, key: str | None = None) -> Key:
        """Return the key of a request, or `ANYBODY` if the server has no keys.

        Args:
            request: The request.
            key: Its field `api_key`; if empty, its header `Authorization` is used: `Bearer` or
                `DeepL-Auth-Key`.

        Raises:
            HTTPException: 403 if the key is missing or wrong, 429 if it was sent too often.
        """
        if not self._keys:
            return ANYBODY
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        known_key = self._keys.find(
            key or (token if kind.lower() in ("bearer", "deepl-auth-key") else "")
        )
        if known_key is None:
            raise HTTPException(403, "api_key is missing or wrong")
        self._metrics.keys.labels(known_key.name).inc()
        self._count(known_key.requests_per_minute, "key", known_key.name)
        return known_key

    def _count(self, most, kind, name):
        """Count a request of an address or a key, and raise HTTPException above its rate."""
        if most and not self._limiter.hit(limits.RateLimitItemPerMinute(most), kind, name):
            self._metrics.refusals.labels(kind).inc()
            message = f"more than {most} requests per minute: slow down"
            raise HTTPException(429, message, {"Retry-After": "60"})


def _is_local(request):
    """Return whether a connection was made from this machine to itself."""
    name, _ = request.scope.get("server") or ("", None)
    address = _ip(name)
    return bool(address and (getattr(address, "ipv4_mapped", None) or address).is_loopback)


def _ip(name):
    """Return an IP address, or None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _is_own(request, origin):
    """Return whether a request comes from the server's own page, also behind a proxy."""
    site = request.headers.get("sec-fetch-site")
    if site:
        return site == "same-origin"
    return urlsplit(origin).netloc == request.headers.get("host")


class Admission:
    """ASGI middleware that refuses requests before they are read, see `Guard.admit`.

    Args:
        app: The ASGI application to wrap.
        guard: The guard that decides.
    """

    def __init__(self, app: ASGIApp, guard: Guard):
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer with the error of `Guard.admit`."""
        if scope["type"] == "http":
            try:
                self.guard.admit(Request(scope))
            except HTTPException as error:
                body = error_body(scope, error.status_code, error.detail)
                response = JSONResponse(body, error.status_code, error.headers)
                return await response(scope, receive, send)
        return await self.app(scope, receive, send)
