"""The state of a running server: models, queue, metrics."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.detection import Detector
from keras_transformer.serving.kept_documents import KeptDocuments
from keras_transformer.serving.kept_files import KeptFiles
from keras_transformer.serving.kept_glossaries import KeptGlossaries
from keras_transformer.serving.logs import log, reason_of
from keras_transformer.serving.monitoring import Metrics
from keras_transformer.serving.queue import Batcher
from keras_transformer.serving.readers import Readers
from keras_transformer.serving.replicas import Replicas
from keras_transformer.serving.replies import Replies
from keras_transformer.serving.settings import Settings
from keras_transformer.serving.turns import Workers


class Service:
    """State shared by all requests of a server.

    Args:
        load: Function that loads the models; `reload` calls it again.
        settings: Settings of the server.
        replicas: The processes that compute, closed by `close`; None: this process computes.
        metrics: Metrics to update; None: new ones.
    """

    def __init__(
        self,
        load: Callable[[], Catalogue],
        settings: Settings,
        replicas: Replicas | None = None,
        metrics: Metrics | None = None,
    ):
        self.settings, self.replicas = settings, replicas
        self._load = load
        self._reloading = asyncio.Lock()
        # One thread does all reloads, because malloc keeps freed memory for each thread.
        self._loader = ThreadPoolExecutor(1, "load")
        self.is_stopping = False  # whether the server is shutting down: it accepts no connections
        self.metrics = metrics or Metrics()
        self.workers, self.file_workers = Workers("texts", 2), Workers("files", 2)
        self.readers = Readers(settings.most_waiting // 2)
        self.kept = KeptFiles(settings.most_kept_bytes)
        self.documents = KeptDocuments(settings.most_kept_bytes)
        self.glossaries = KeptGlossaries(settings.glossaries)
        self.catalogue, self.detector, self.replies = self._read()
        queue = settings.tokens_per_batch, settings.delay, settings.most_waiting
        self.batcher = Batcher(*queue, self.metrics.watch, replicas.count if replicas else 1)
        self._warming = [self.batcher.call(x, cost=0) for x in self.catalogue.cold]
        for future in self._warming:
            future.add_done_callback(_report)
        self.metrics.waiting.set_function(self._waiting)
        self.metrics.slots.set_function(lambda: sum(x.running for x in self.replies.values()))
        self.metrics.replicas.set_function(self.alive)
        if replicas:
            replicas.restarted = self.metrics.restarts.inc

    def alive(self) -> int:
        """Return the number of replicas that can compute; 1 if this process computes."""
        return self.replicas.alive() if self.replicas else 1

    def is_broken(self) -> str | None:
        """Return why requests cannot be computed, for `/health`; None if they can."""
        if not self.alive():
            return "no replica is alive: they are being started again"
        threads = self.batcher, *self.replies.values()
        if not all(thread.is_alive() for thread in threads):
            return "a thread that computes has ended"
        if any(x.done() and x.exception() for x in self._warming):
            return "a model cannot translate: the log has the error"
        return None

    def is_warming(self) -> bool:
        """Return whether a translator has not finished its first translation yet."""
        return not all(x.done() for x in self._warming)

    def _read(self):
        """Load the models; return the catalogue, the detector, and the threads of replies."""
        catalogue, settings = self._load(), self.settings
        limits = settings.slots, settings.most_waiting
        detector, replies = Detector(catalogue.languages), {}
        try:
            for name, writer in catalogue.writers.items():
                replies[name] = Replies(writer.writer.model, *limits, self.metrics.watch_token)
        except BaseException:
            _close(replies)
            raise
        return catalogue, detector, replies

    def _waiting(self):
        return self.batcher.waiting + sum(x.waiting for x in self.replies.values())

    async def reload(self) -> None:
        """Reload the models and use them for new requests.

        Requests accepted earlier are finished with the old models; replicas may use old or new
        ones.

        Raises:
            Exception: Any error of loading; the old models then stay in use.
        """
        async with self._reloading:
            old, loop = self.replies, asyncio.get_running_loop()
            fresh = await loop.run_in_executor(self._loader, self._read)
            self.catalogue, self.detector, self.replies = fresh
            self.metrics.reloads.inc()
            await asyncio.to_thread(_close, old)
            del old
            # Keras models are reference cycles, which Python frees only at a collection.
            await loop.run_in_executor(self._loader, _collect)

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file for an hour, if there is room; return its token in `kept`."""
        token = self.kept.add(name, content)
        asyncio.get_running_loop().call_later(self.kept.seconds + 1, self.kept.drop)
        return token

    async def close(self) -> None:
        """Finish the accepted requests, then end the replicas and threads.

        With replicas, which may all have ended, wait at most `settings.timeout` seconds. Documents
        that are being translated are given up: they would be lost with the process.
        """
        await self.documents.close()
        if self.replicas:
            await asyncio.to_thread(self.batcher.close, self.settings.timeout)
            await asyncio.to_thread(self.replicas.close)
        await asyncio.to_thread(self.batcher.close)
        await asyncio.to_thread(_close, self.replies)
        for workers in (self.workers, self.file_workers):
            workers.close()
        self._loader.shutdown(wait=False)


def _report(future: Future) -> None:
    if error := future.exception():
        log.error("a model cannot translate: %s", reason_of(error))


def _collect():
    """Collect garbage, also among the objects that `connections.run` has frozen."""
    is_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if is_frozen:
        gc.freeze()


def _close(replies):
    for model_replies in replies.values():
        model_replies.close()
