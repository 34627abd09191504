"""The state of a running server: models, queue, metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.detection import Detector
from keras_transformer.serving.kept_files import KeptFiles
from keras_transformer.serving.queue import Batcher
from keras_transformer.serving.readers import Readers
from keras_transformer.serving.replicas import Replicas
from keras_transformer.serving.replies import Job, Replies
from keras_transformer.serving.settings import Settings


class Service:
    """State shared by all requests of a server.

    Args:
        load: Function that loads the models; `reload` calls it again.
        settings: Settings of the server.
        replicas: The processes that compute, closed by `close`; None: this process computes.
    """

    def __init__(
        self, load: Callable[[], Catalogue], settings: Settings, replicas: Replicas | None = None
    ):
        self.settings, self.replicas = settings, replicas
        self._load = load
        self._reloading = asyncio.Lock()
        self.is_stopping = False  # it accepts no more connections
        self.metrics = Metrics()
        self.readers = Readers(settings.most_waiting)
        self.kept = KeptFiles(settings.most_kept_bytes)
        self.catalogue, self.detector, self.replies = self._read()
        queue = settings.tokens_per_batch, settings.delay, settings.most_waiting
        self.batcher = Batcher(*queue, self.metrics.watch, replicas.count if replicas else 1)
        self.metrics.waiting.set_function(self._waiting)
        self.metrics.slots.set_function(lambda: sum(x.running for x in self.replies.values()))
        self.metrics.replicas.set_function(self.alive)
        if replicas:
            replicas.restarted = self.metrics.restarts.inc

    def alive(self) -> int:
        """Return the number of replicas that can compute; 1 if this process computes."""
        return self.replicas.alive() if self.replicas else 1

    def is_broken(self) -> str | None:
        """Return why nothing can be computed; None if it can."""
        if not self.alive():
            return "no replica is alive: they are being started again"
        if not self.batcher.is_alive():
            return "a thread that computes has ended"
        return None

    def _read(self):
        catalogue, settings = self._load(), self.settings
        limits = settings.slots, settings.most_waiting
        replies = {
            name: Replies(one.writer.model, *limits, self.metrics.watch_token)
            for name, one in catalogue.writers.items()
        }
        return catalogue, Detector(catalogue.languages), replies

    def _waiting(self):
        return self.batcher.waiting + sum(x.waiting for x in self.replies.values())

    async def reload(self) -> None:
        """Reload the models and use them for new requests.

        Requests accepted earlier are finished with the old models, or with replicas on either.

        Raises:
            Exception: Any error of loading; the old models then stay in use.
        """
        async with self._reloading:
            old = self.replies
            fresh = await asyncio.to_thread(self._read)
            self.catalogue, self.detector, self.replies = fresh
            self.metrics.reloads.inc()
            await asyncio.to_thread(_close, old)

    async def close(self) -> None:
        """Finish the accepted requests, and end the replicas."""
        if self.replicas:  # all may have ended: requests are not waited for longer than they wait
            await asyncio.to_thread(self.batcher.close, self.settings.timeout)
            await asyncio.to_thread(self.replicas.close)
        await asyncio.to_thread(self.batcher.close)
        await asyncio.to_thread(_close, self.replies)


def _close(replies):
    for one in replies.values():
        one.close()


class Metrics:
    """Metrics for Prometheus."""

    def __init__(self):
        self._registry = registry = CollectorRegistry()
        name = "keras_transformer"
        self.requests = Counter(
            f"{name}_requests", "Requests answered.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            f"{name}_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            registry=registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.sentences = Counter(f"{name}_sentences", "Sentences translated.", registry=registry)
        self.tokens = Counter(
            f"{name}_source_tokens", "Source tokens translated.", registry=registry
        )
        self.batch_sentences = Histogram(
            f"{name}_batch_sentences",
            "Sentences per batch.",
            registry=registry,
            buckets=[2**i for i in range(11)],
        )
        self.batch_seconds = Histogram(
            f"{name}_batch_seconds", "Seconds to compute a batch.", registry=registry
        )
        self.waiting = Gauge(f"{name}_waiting_tokens", "Tokens in the queue.", registry=registry)
        self.slots = Gauge(f"{name}_slots", "Replies that are being written.", registry=registry)
        self.read = Counter(
            f"{name}_prompt_tokens",
            "Tokens of prompts, and whether they were read or kept from earlier prompts.",
            ["source"],
            registry=registry,
        )
        self.written = Counter(
            f"{name}_reply_tokens", "Tokens of replies of language models.", registry=registry
        )
        self.first_token = Histogram(
            f"{name}_first_token_seconds",
            "Seconds from a request to the first token of its reply.",
            registry=registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.reloads = Counter(f"{name}_reloads", "Reloads of the models.", registry=registry)
        self.replicas = Gauge(
            f"{name}_replicas", "Processes that can compute batches.", registry=registry
        )
        self.restarts = Counter(
            f"{name}_replica_restarts", "Restarts of replicas that ended.", registry=registry
        )

    def watch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Record a batch."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batch_sentences.observe(sentences)
        self.batch_seconds.observe(seconds)

    def watch_token(self, job: Job, is_first: bool) -> None:
        """Record a token of a reply."""
        self.written.inc()
        if is_first:
            self.first_token.observe(time.monotonic() - job.arrived)
            self.read.labels("kept").inc(job.reused)
            self.read.labels("read").inc(len(job.prompt_ids) - job.reused)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return prometheus_client.generate_latest(self._registry)
