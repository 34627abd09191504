"""Logs of a server: requests, errors and warnings, as text or JSON, by default without texts."""

from __future__ import annotations

import json
import logging
import re
import traceback
import uuid
import warnings
from contextvars import ContextVar
from functools import partial

from keras_transformer.system.failures import in_one_line

log = logging.getLogger("keras_transformer.serving")
access = logging.getLogger("keras_transformer.serving.access")
request_id: ContextVar[str] = ContextVar("request_id", default="")
client: ContextVar[str] = ContextVar("client", default="")  # the address
FORMATS = ("text", "json")


def identified(given: str) -> str:
    """Return a client's request id if it is 1 to 64 letters, digits or `_.:-`, else a new one."""
    return given if re.fullmatch(r"[\w.:-]{1,64}", given, re.ASCII) else uuid.uuid4().hex


def configure(
    log_format: str = "text",
    access_log: bool = False,
    log_texts: bool = False,
    log_clients: bool = True,
) -> None:
    """Let this process write the logs of a server to stderr.

    Args:
        log_format: "text", or "json" for one JSON object per line.
        access_log: Whether to write a line for each request.
        log_texts: Whether errors and warnings, which may quote texts that users sent, are written
            in full. If False, only the type of an error and the lines of code that raised it are
            written, and a warning ends before the value that it quotes.
        log_clients: Whether the lines of a request have the address of its client.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if log_format == "json" else logging.Formatter(_TEXT, _TIME))
    handler.addFilter(partial(_identify, log_clients))
    if not log_texts:
        handler.addFilter(_without_texts)
    for logger in (logging.getLogger("uvicorn"), log):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    access.setLevel(logging.INFO if access_log else logging.CRITICAL)

    def warn(message, *rest, **options):
        text = str(message)
        log.warning("%s", text if log_texts else text.partition(", got ")[0])

    warnings.showwarning = warn


def place_of(error: BaseException) -> str:
    """Return the type of an error, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}"


def reason_of(error: BaseException) -> str:
    """Return the type of an error, its message and its notes."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {in_one_line(error)}{notes}"


_TEXT = "%(asctime)s %(levelname)s: %(message)s%(suffix)s"
_TIME = "%Y-%m-%dT%H:%M:%S%z"


def _identify(log_clients, record):
    record.request_id = request_id.get()
    record.client = client.get() if log_clients else ""
    known = [x for x in (record.request_id, record.client) if x]
    record.suffix = f" [{', '.join(known)}]" if known else ""
    return True


def _without_texts(record):
    """Replace an exception of a record by its types and lines of code, without its message."""
    if record.exc_info and record.exc_info[1]:
        parts: list[str] = []
        error = record.exc_info[1]
        while error:
            name = f"{type(error).__name__}\n"
            parts.insert(0, "".join(traceback.format_tb(error.__traceback__)) + name)
            error = error.__cause__ or error.__context__
        record.exc_text, record.exc_info = "from ".join(parts).rstrip(), None
    return True


class _Json(logging.Formatter):
    """A formatter that writes each log record as a JSON object."""

    def format(self, record):
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        fields = {
            "time": self.formatTime(record, _TIME),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": record.request_id or None,
            "client": record.client or None,
            "exception": record.exc_text,
            **getattr(record, "fields", {}),
        }
        return json.dumps({name: x for name, x in fields.items() if x is not None})
