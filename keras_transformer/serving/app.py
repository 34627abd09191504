"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import signal
import time
from collections.abc import Callable
from importlib import resources

import uvicorn
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.staticfiles import StaticFiles
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer import __version__
from keras_transformer.serving import libretranslate, openai_api, openai_tasks, task_api
from keras_transformer.serving import tensorflow_serving as predict
from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.errors import add_handlers, error_body
from keras_transformer.serving.guard import BodyLimit, Guard
from keras_transformer.serving.replicas import Replicas
from keras_transformer.serving.service import Service
from keras_transformer.serving.settings import Settings

log = logging.getLogger("keras_transformer.serving")
_POLICY = b"default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'"
# Swagger's page has inline scripts and styles, and images in its styles.
_DOCS_POLICY = b"default-src 'self' 'unsafe-inline'; img-src 'self' data:"


def create_app(
    load: Callable[[], Catalogue],
    settings: Settings | None = None,
    replicas: Replicas | None = None,
) -> FastAPI:
    """Return the server as an ASGI application, for uvicorn or another single-process server.

    ```python
    app = create_app(lambda: Catalogue.load(["saved_models/multi30k"]))
    ```

    Args:
        load: Function that loads the models, called when the application starts and at SIGHUP.
        settings: Settings of the server; None: the defaults.
        replicas: The processes that compute, then `load` is their `load`; None: this process
            computes.
    """
    settings = settings or Settings()

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.state.service = service = await asyncio.to_thread(Service, load, settings, replicas)
        _reload_on_hangup(service)
        yield
        await service.close()
        libretranslate.remove_files(app)

    app = FastAPIOffline(
        title="keras_transformer",
        description="Translation with the APIs of LibreTranslate and TensorFlow Serving; language "
        "models, embeddings and transcription with OpenAI's; classes, entities, answers and more.",
        version=__version__,
        lifespan=lifespan,
        redoc_url=None,
    )
    app.state.guard = Guard(settings)
    app.include_router(libretranslate.router)
    app.include_router(openai_api.router)
    app.include_router(openai_tasks.router)
    app.include_router(task_api.router)
    app.include_router(predict.router)

    @app.head("/health", include_in_schema=False)
    @app.get("/health", tags=["server"])
    async def health() -> dict[str, str]:
        """Return ok if the server can translate, and 503 while no replica is alive."""
        if not app.state.service.alive():
            raise HTTPException(503, "no replica is alive: they are being started again")
        return {"status": "ok"}

    @app.get("/metrics", tags=["server"], response_class=PlainTextResponse)
    async def metrics() -> Response:
        """Return metrics for Prometheus."""
        return PlainTextResponse(app.state.service.metrics.text())

    page = resources.files("keras_transformer.serving") / "page"
    app.mount("/", StaticFiles(directory=str(page), html=True), name="page")

    add_handlers(app)
    app.add_middleware(Watch, server=app, timeout=settings.timeout)
    app.add_middleware(BodyLimit, settings=settings)
    cross = dict(allow_methods=["GET", "POST"], allow_headers=["Authorization"])
    app.add_middleware(CORSMiddleware, allow_origins=["*"], **cross)
    return app


class Watch:
    """ASGI middleware that counts requests, cancels them after a timeout, and sets headers.

    Args:
        app: The ASGI application to wrap.
        server: The FastAPI application, whose service has the metrics.
        timeout: Maximum seconds per request; for an answer that is streamed, between its parts.
    """

    def __init__(self, app: ASGIApp, server: FastAPI, timeout: float):
        self.app, self.server, self.timeout = app, server, timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begun, status = time.monotonic(), None

        async def send_with_headers(message):
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", [])
                policy = _DOCS_POLICY if _path(scope) == "/docs" else _POLICY
                message["headers"] = [
                    *message["headers"],
                    (b"cache-control", b"no-cache"),  # the page's files must be of the same version
                    (b"content-security-policy", policy),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)
            if message.get("more_body"):
                clock.reschedule(asyncio.get_running_loop().time() + self.timeout)

        try:
            async with asyncio.timeout(self.timeout) as clock:
                await self.app(scope, receive, send_with_headers)
        except TimeoutError:
            if status is None:
                message = f"not finished within {self.timeout:g} seconds"
                response = JSONResponse(error_body(scope, 504, message), 504)
                await response(scope, receive, send_with_headers)
        finally:
            path = _path(scope)
            metrics = self.server.state.service.metrics
            metrics.requests.labels(path, status or 500).inc()
            metrics.seconds.labels(path).observe(time.monotonic() - begun)


def _path(scope):
    """Return the path template of a request's route, as in `/v1/models/{name}`."""
    return getattr(scope.get("route"), "path", None) or "page"


def _reload_on_hangup(service):
    async def reload():
        try:
            await service.reload()
            log.warning("models reloaded")
        except Exception:
            log.exception("models could not be reloaded: the old ones stay in use")

    tasks = set()

    def begin():
        task = asyncio.ensure_future(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # Not available on Windows, nor where the loop runs outside the main thread.
    with contextlib.suppress(NotImplementedError, AttributeError, RuntimeError, ValueError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)


def run(app: FastAPI, host: str, port: int, patience: float, root_path: str = "") -> None:
    """Serve until SIGTERM or SIGINT, then finish the accepted requests.

    Args:
        app: The application from `create_app`.
        host, port: Address to listen on; port 0 chooses a free port.
        patience: Maximum seconds that the shutdown waits for answers.
        root_path: Path prefix that a proxy strips.
    """
    options = dict(timeout_graceful_shutdown=math.ceil(patience), root_path=root_path)
    # Keep idle connections longer than clients do, so that none is closed while a client sends a
    # request. Uvicorn's default of 5 seconds is shorter than a long batch.
    options |= dict(timeout_keep_alive=75, access_log=False, ws="none")
    uvicorn.run(app, host=host, port=port, **options)
