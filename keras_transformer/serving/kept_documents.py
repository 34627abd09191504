"""Documents of DeepL's API: translated in the background, their state kept for an hour."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.exceptions import HTTPException

from keras_transformer.serving import traces, turns
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.logs import log
from keras_transformer.serving.waiting import QueueFullError, TooLargeError

MOST_OF_A_CLIENT = 20  # documents of a client that are being translated at once
MOST = 10_000  # documents whose state is kept
LONGEST_PAUSE = 16  # seconds until a full queue is tried again


class Result(NamedTuple):
    """A translated document.

    Args:
        token, name: What `KeptFiles` finds the file by.
        untranslated: Names of the parts that were not translated.
        characters: Number of characters of its texts.
    """

    token: str
    name: str
    untranslated: list[str]
    characters: int


@dataclass(eq=False)
class KeptDocument:
    """A document that is being translated, or has been.

    Args:
        owner: Name of the API key that sent it; others do not find it.
        size: Its number of bytes.
        client: Client that sent it.
        id: Its identifier.
        key: The secret that requests for it must have.

    Attributes:
        result: The translated document; None: there is none, or not yet.
        error: Why it could not be translated; None: there is no error.
        expires: Time at which its state is dropped, in seconds of the clock; None: its translation
            has not ended.
    """

    owner: str
    size: int
    client: turns.Client | None = field(default_factory=turns.current.get)
    id: str = field(default_factory=lambda: uuid.uuid4().hex.upper())
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    result: Result | None = None
    error: str | None = None
    expires: float | None = None

    def __post_init__(self):
        self.task: asyncio.Task[None] | None = None


class KeptDocuments:
    """Documents of all clients, each found by its identifier and its key.

    Args:
        most_bytes: Maximum size of all documents that are being translated.
        seconds: Maximum seconds of a translation, and seconds for which its end is known.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self, most_bytes: int, seconds: float = 3600, clock: Callable[[], float] = time.monotonic
    ):
        self.most_bytes, self.seconds = most_bytes, seconds
        self._clock = clock
        self._documents: dict[str, KeptDocument] = {}  # oldest first

    def add(
        self, owner: str, size: int, translate: Callable[[], Awaitable[Result]]
    ) -> KeptDocument:
        """Translate a document in the background; return it.

        Args:
            owner, size: See `KeptDocument`.
            translate: Function that translates it; called again while the queue is full.

        Raises:
            QueueFullError: If too many documents are being translated.
        """
        self._drop(room=1)
        document = KeptDocument(owner, size)
        running = [x for x in self._documents.values() if x.expires is None]
        count = sum(x.client == document.client for x in running)
        total = sum(x.size for x in running)
        for number, most, what in (
            (count + 1, MOST_OF_A_CLIENT, "documents of a client"),
            (total + size, max(self.most_bytes, size), "bytes of documents"),
        ):
            if number > most:
                raise QueueFullError(f"at most {most} {what} are translated at once")
        self._documents[document.id] = document
        document.task = asyncio.create_task(self._run(document, translate))
        document.task.add_done_callback(lambda _: self._end(document))
        return document

    async def _run(self, document, translate):
        """Translate a document, and keep its result or a message of why there is none."""
        traces.current.set(None)  # the trace of the request that sent it ends earlier
        try:
            async with asyncio.timeout(self.seconds):
                document.result = await _repeated(translate)
        except HTTPException as error:
            document.error = str(error.detail)
        except (ValueError, TooLargeError, ImportError) as error:
            document.error = " ".join(str(error).split())
        except TimeoutError:
            document.error = f"not translated within {self.seconds:g} seconds"
        except Exception as error:
            log.error("a document could not be translated", exc_info=error)
            document.error = "the server failed: see its log"

    def _end(self, document):
        document.expires = self._clock() + self.seconds

    def _drop(self, room=0):
        """Drop expired documents, and then the oldest that have ended until `room` more fit."""
        surplus = len(self._documents) + room - MOST
        ended = [(id, x.expires) for id, x in self._documents.items() if x.expires is not None]
        for i, (id, expires) in enumerate(ended):
            if i < surplus or expires <= self._clock():
                del self._documents[id]

    def find(self, owner: str, id: str, key: str) -> KeptDocument:
        """Return a document.

        Raises:
            Refusal: 404 if this owner has no document with this identifier and key.
        """
        self._drop()
        document = self._documents.get(id)
        keys = (document.key.encode(), key.encode()) if document else (b"", b"")
        if document is None or document.owner != owner or not secrets.compare_digest(*keys):
            raise Refusal(404, f"there is no document {id[:80]!r} with this key, or it has expired")
        return document

    async def close(self) -> None:
        """Cancel the translations."""
        tasks = [x.task for x in self._documents.values() if x.task and not x.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _repeated(translate):
    """Return the result of `translate`; while the queue is full, call it again after a pause."""
    pause = 1
    while True:
        try:
            return await translate()
        except QueueFullError:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
