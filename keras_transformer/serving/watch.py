"""ASGI middleware around all requests: time limit, client, metrics and headers."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keras_transformer.serving import logs, traces, turns
from keras_transformer.serving.errors import error_body, path_of
from keras_transformer.serving.guard import is_file
from keras_transformer.serving.monitoring import Metrics

_POLICY = b"default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'"
# Swagger's page has inline scripts and styles, and images in its styles.
_DOCS_POLICY = b"default-src 'self' 'unsafe-inline'; img-src 'self' data:"
_NOT_FRAMED = b"; frame-ancestors 'none'"
LEFT = 499  # status of a request whose client left: nginx's number


class Watch:
    """ASGI middleware that counts requests, sets headers, and cancels requests.

    A request is cancelled if it takes longer than `timeout`, or if its client disconnects.

    Args:
        app: The ASGI application to wrap.
        metrics: Metrics to update.
        timeout: Maximum seconds per request; for a streamed answer, between its parts.
        tracer: Sender of traces of POST requests; None: no traces.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        timeout: float,
        tracer: traces.Tracer | None = None,
    ):
        self.app, self.metrics, self.timeout, self.tracer = app, metrics, timeout, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a time limit; record it at its end."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        start, status = time.monotonic(), None
        name = logs.identified(Headers(scope=scope).get("x-request-id", ""))
        logs.request_id.set(name)
        logs.client.set((scope.get("client") or [""])[0])
        trace = traces.Trace() if self.tracer and scope["method"] == "POST" else None
        traces.current.set(trace)
        address, _ = scope.get("client") or ("", None)
        turns.current.set(turns.Client(turns.network(address), is_file(scope)))

        async def send_with_headers(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                policy = _DOCS_POLICY if path_of(scope) == "/docs" else _POLICY
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"cache-control", b"no-cache"),  # the page's files must be of the same version
                    (b"content-security-policy", policy + _NOT_FRAMED),
                    (b"x-content-type-options", b"nosniff"),
                    (b"x-request-id", name.encode()),
                ]
            await send(message)
            if message.get("more_body"):
                clock.reschedule(asyncio.get_running_loop().time() + self.timeout)

        async def answer(status, message):
            response = JSONResponse(error_body(scope, status, message), status)
            await response(scope, receive, send_with_headers)

        self.metrics.in_flight.inc()
        try:
            async with asyncio.timeout(self.timeout) as clock:
                if not await _while_awaited(self.app, scope, receive, send_with_headers):
                    status = LEFT
        except TimeoutError:
            if status is None:
                await answer(504, f"not finished within {self.timeout:g} seconds")
        except Exception as error:
            logs.log.error("500: a request failed", exc_info=error)
            if status is not None:
                raise  # the answer had begun: the connection is closed
            await answer(500, "the server failed: see its log")
        finally:
            self.metrics.in_flight.dec()
            self._note(scope, status or 500, start, trace)

    def _note(self, scope, status, start, trace):
        """Record a request in metrics, traces and the log."""
        path, seconds = path_of(scope), time.monotonic() - start
        if trace is not None and self.tracer is not None:
            named = {"http.request.method": "POST", "http.route": path}
            named["request_id"] = logs.request_id.get()
            self.tracer.send(trace, f"POST {path}", start, Headers(scope=scope), status, **named)
        self.metrics.requests.labels(path, status).inc()
        self.metrics.seconds.labels(path).observe(seconds)
        fields = dict(method=scope["method"], path=path, status=status, seconds=round(seconds, 4))
        message = "%(method)s %(path)s %(status)d %(seconds)g s"
        logs.access.info(message, fields, extra={"fields": fields})


async def _while_awaited(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> bool:
    """Run an application; return False, and cancel it, if the client disconnects first."""
    is_read = asyncio.Event()

    async def receive_body() -> Message:
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            is_read.set()
        return message

    async def leave():
        await is_read.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    work: asyncio.Future[Any] = asyncio.ensure_future(app(scope, receive_body, send))
    left = asyncio.ensure_future(leave())
    try:
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        return work.done()
    except ClientDisconnect:  # in the middle of its body
        return False
    finally:
        work.cancel()
        left.cancel()
        await asyncio.gather(work, left, return_exceptions=True)
