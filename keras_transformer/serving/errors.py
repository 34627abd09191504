"""Error answers, in the form of LibreTranslate, DeepL or OpenAI."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Scope

from keras_transformer.serving import logs
from keras_transformer.serving.queue import HandlerError
from keras_transformer.serving.waiting import QueueFullError, TooLargeError

OPENAI_PATHS = tuple(
    f"/v1/{name}"
    for name in ("chat/completions", "completions", "models", "embeddings", "audio/transcriptions")
)
DEEPL_PATHS = ("/v2/", "/v3/")  # beginnings of the paths of DeepL's API


class Refusal(HTTPException):
    """An error answer that names the field of the request that caused it.

    Args:
        status: Status of the answer.
        message: Text of the error.
        param: Name of the field, such as "messages[0].role"; None: no single field.
        code: OpenAI's code of the error, such as "model_not_found"; None: it has none.
    """

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None
    ):
        super().__init__(status, message)
        self.param, self.code = param, code


def not_allowed(method: str, allowed: Collection[str]) -> HTTPException:
    """Return the 405 error of a request whose path takes only other methods."""
    names = ", ".join(allowed)
    return HTTPException(405, f"{method} is not allowed here: use {names}", {"Allow": names})


def error_body(
    scope: Scope, status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """Return the body of an error answer.

    It has OpenAI's form for the paths `OPENAI_PATHS` and for errors with a code, DeepL's for the
    paths `DEEPL_PATHS`, else LibreTranslate's.

    Args:
        scope: The request's scope.
        status, message, param, code: See `Refusal`.
    """
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    if path.startswith(DEEPL_PATHS):
        return {"message": message}
    if path not in OPENAI_PATHS and code is None:
        return {"error": message}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    if status == 429:
        kind, code = "rate_limit_error", "rate_limit_exceeded"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def add_handlers(app: FastAPI) -> None:
    """Let an application answer expected errors with a JSON body; `Watch` answers all others."""

    def answer(request, status, message, headers=None, **more):
        return JSONResponse(error_body(request.scope, status, message, **more), status, headers)

    @app.exception_handler(HTTPException)
    async def known(request, error):
        more = {name: getattr(error, name, None) for name in ("param", "code")}
        headers = getattr(error, "headers", None)
        return answer(request, error.status_code, str(error.detail), headers, **more)

    @app.exception_handler(RequestValidationError)
    async def invalid(request, error):
        first = error.errors()[0]
        place = first["loc"][1:] or first["loc"]  # without "body", "query" or "path"
        return answer(request, 400, said([first | {"loc": place}]))

    @app.exception_handler(ValueError)
    async def wrong(request, error):
        # The cause may be a bug of the server: log where the error was raised.
        path, place = path_of(request.scope), logs.place_of(error)
        logs.log.warning("%s %s: 400 for %s", request.method, path, place)
        return answer(request, 400, " ".join(str(error).split()))

    @app.exception_handler(TooLargeError)
    async def large(request, error):
        return answer(request, 413, str(error))

    @app.exception_handler(QueueFullError)
    async def full(request, error):
        request.app.state.service.metrics.refusals.labels("queue").inc()
        return answer(request, 429, f"slow down: {error}", {"Retry-After": "1"})

    @app.exception_handler(HandlerError)
    async def spoilt(request, error):
        logs.log.error("500: a handler failed", exc_info=error)
        return answer(request, 500, "the server failed: see its log")

    @app.exception_handler(ImportError)
    async def missing(request, error):
        return answer(request, 501, str(error))


def said(errors: Any) -> str:
    """Return the first of pydantic's errors in one line: field, problem and value.

    The value is left out if it may contain an API key.
    """
    first = errors[0]
    place = str((first["loc"] or ("body",))[0])
    said = f"{place}: {first['msg']}"
    # For a missing field, `input` is the whole body, which may hold a key.
    if first["type"] == "missing" or "api_key" in first["loc"]:
        return said
    return f"{said}, got {_short(first.get('input'))}"


def place_of(errors: Any) -> str | None:
    """Return the field of the first of pydantic's errors, such as "messages[0].role".

    Return None if the error is about the whole body.
    """
    name = ""
    for part in errors[0]["loc"]:
        if isinstance(part, int):
            name += f"[{part}]"
        elif part.isidentifier() and part not in ("str", "int"):  # types of a union
            name += f".{part}" if name else part
    return name or None


def path_of(scope: Scope) -> str:
    """Return the path template of a request's route, such as `/v1/models/{name}`.

    Without a route, return "page" for GET and HEAD, else "refused".
    """
    other = "page" if scope["method"] in ("GET", "HEAD") else "refused"
    return getattr(scope.get("route"), "path", None) or other


def _short(value):
    text = ascii(value[:81] if isinstance(value, str | list) else value)
    return text if len(text) <= 80 else text[:77] + "..."
