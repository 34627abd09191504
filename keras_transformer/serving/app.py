"""The server as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from importlib import resources
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi_offline import FastAPIOffline

from keras_transformer import __version__
from keras_transformer.serving import (
    deepl_api,
    deepl_documents,
    libretranslate,
    live_api,
    monitoring,
    openai_api,
    openai_tasks,
    task_api,
)
from keras_transformer.serving import tensorflow_serving as predict
from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.errors import add_handlers
from keras_transformer.serving.guard import Admission, BodyLimit, Framing, Guard
from keras_transformer.serving.kept_glossaries import KeptGlossaries
from keras_transformer.serving.logs import log, reason_of
from keras_transformer.serving.page_files import Page
from keras_transformer.serving.replicas import Replicas
from keras_transformer.serving.service import Service
from keras_transformer.serving.settings import Settings
from keras_transformer.serving.traces import Tracer
from keras_transformer.serving.watch import Watch


def create_app(
    load: Callable[[], Catalogue],
    settings: Settings | None = None,
    replicas: Replicas | None = None,
    tracer: Tracer | None = None,
) -> FastAPI:
    """Return the server as an ASGI application, for uvicorn or another single-process server.

    ```python
    app = create_app(lambda: Catalogue.load(["saved_models/multi30k"]))
    ```

    Args:
        load: Function that loads the models, called when the application starts and at SIGHUP.
        settings: Settings of the server; None: the defaults.
        replicas: Processes that compute batches; `load` must then return the result of their method
            `load`. None: this process computes.
        tracer: Sender of the traces of requests, closed when the application ends; None: no traces.
    """
    settings = settings or Settings()
    KeptGlossaries(settings.glossaries)  # refuses broken files before the server starts

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.state.service = service = await asyncio.to_thread(
            Service, load, settings, replicas, metrics
        )
        _reload_on_hangup(service, app.state.guard)
        yield
        await service.close()
        if tracer:
            await asyncio.to_thread(tracer.close)

    app = FastAPIOffline(
        title="keras_transformer",
        description="Translation with the APIs of LibreTranslate, DeepL and TensorFlow Serving; "
        "language models, embeddings and transcription with OpenAI's; classes, entities, answers "
        "and more.",
        version=__version__,
        lifespan=lifespan,
        redoc_url=None,
    )
    metrics = monitoring.Metrics()
    app.state.guard = Guard(settings, metrics)
    app.include_router(libretranslate.router)
    app.include_router(live_api.router)
    app.include_router(deepl_api.router)
    app.include_router(deepl_documents.router)
    app.include_router(openai_api.router)
    app.include_router(openai_tasks.router)
    app.include_router(task_api.router)
    app.include_router(predict.router)
    app.include_router(monitoring.router)

    page = resources.files("keras_transformer.serving") / "page"
    app.mount("/", Page(directory=str(page), html=True), name="page")

    add_handlers(app)
    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(Admission, guard=app.state.guard)
    app.add_middleware(Watch, metrics=metrics, timeout=settings.timeout, tracer=tracer)
    if settings.origins:
        cross: dict[str, Any] = dict(allow_methods=["GET", "POST"], max_age=86_400)
        headers = ["X-Request-ID", "X-Untranslated", "Retry-After"]
        cross |= dict(allow_headers=["Authorization"], expose_headers=headers)
        app.add_middleware(CORSMiddleware, allow_origins=[*settings.origins], **cross)
    app.add_middleware(Framing)  # outermost
    return app


async def _reload(service, guard):
    """Reload the keys and the models; after an error, which is logged, the old ones stay."""
    try:
        await asyncio.to_thread(guard.reload)
        log.warning("keys reloaded")
    except Exception as error:
        reason = reason_of(error).partition(", got ")[0]  # the value may be a key
        log.error("keys could not be reloaded: the old ones stay in use: %s", reason)
    try:
        await service.reload()
        log.warning("models reloaded")
    except Exception as error:
        message = "models could not be reloaded: the old ones stay in use: %s"
        log.exception(message, reason_of(error))


def _reload_on_hangup(service, guard):
    """Let SIGHUP reload the keys and the models, where the system has this signal."""
    tasks = set()

    def begin():
        task = asyncio.ensure_future(_reload(service, guard))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    # Signal handlers are not available on Windows, nor where the loop runs outside the main thread.
    with contextlib.suppress(NotImplementedError, AttributeError, RuntimeError, ValueError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)
