"""Documents in the background: their number, their time, and whose they are."""

import asyncio

import pytest
from starlette.exceptions import HTTPException

from keras_transformer.serving import kept_documents, turns
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.kept_documents import KeptDocuments, Result
from keras_transformer.serving.waiting import QueueFullError, TooLargeError

pytestmark = pytest.mark.once("no model is used")
RESULT = Result("token", "a.de.txt", [], 3)


async def done():
    return RESULT


async def endless():
    await asyncio.sleep(3600)


def failing(error):
    async def fail():
        raise error

    return fail


def test_results_and_errors():
    async def run():
        kept = KeptDocuments(100)
        document = kept.add("anna", 1, done)
        assert document.result is None
        await document.task
        assert document.result == RESULT and document.error is None
        assert kept.find("anna", document.id, document.key) is document
        for place in (("bob", document.id, document.key), ("anna", document.id, "x")):
            with pytest.raises(Refusal, match="404: there is no document '[0-9A-F]{32}' with this"):
                kept.find(*place)
        for error, message in (
            (HTTPException(403, "no"), "no"),
            (ValueError("a\n b"), "a b"),
            (TooLargeError("large"), "large"),
            (KeyError("secret"), "the server failed: see its log"),
        ):
            document = kept.add("anna", 1, failing(error))
            await document.task
            assert (document.error, document.result) == (message, None)
        short = KeptDocuments(100, seconds=0.01)
        document = short.add("anna", 1, endless)
        await document.task
        assert document.error == "not translated within 0.01 seconds"

    asyncio.run(run())


def test_a_full_queue_is_tried_again(monkeypatch):
    pauses, attempts = [], []
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda x: pauses.append(x) or sleep(0))

    async def translate():
        attempts.append(1)
        if len(attempts) < 8:
            raise QueueFullError
        return RESULT

    async def run():
        document = KeptDocuments(100).add("anna", 1, translate)
        await document.task
        assert document.result == RESULT

    asyncio.run(run())
    assert pauses == [1, 2, 4, 8, 16, 16, 16]


def test_limits(monkeypatch):
    monkeypatch.setattr(kept_documents, "MOST_OF_A_CLIENT", 2)
    monkeypatch.setattr(kept_documents, "MOST", 3)
    now = 0.0

    async def run():
        nonlocal now
        kept = KeptDocuments(100, 60, lambda: now)
        large = kept.add("anna", 200, endless)  # alone it may be larger
        with pytest.raises(QueueFullError, match="at most 100 bytes of documents are translated"):
            kept.add("anna", 1, endless)
        await kept.close()
        assert large.task.cancelled()
        running = [kept.add("anna", 1, endless) for _ in range(2)]
        with pytest.raises(QueueFullError, match="at most 2 documents of a client"):
            kept.add("anna", 1, endless)
        turns.current.set(turns.Client("other"))
        ended = []
        for _ in range(3):  # above 3 in all, the oldest that has ended makes room
            ended.append(kept.add("anna", 1, done))
            await ended[-1].task
            with pytest.raises(Refusal):
                kept.find("anna", large.id, large.key)
        first, second, last = ended
        assert kept.find("anna", last.id, last.key)
        for document in (first, second):
            with pytest.raises(Refusal):
                kept.find("anna", document.id, document.key)
        now = 60.0
        with pytest.raises(Refusal):
            kept.find("anna", last.id, last.key)
        assert kept.find("anna", running[0].id, running[0].key)
        await kept.close()

    asyncio.run(run())
