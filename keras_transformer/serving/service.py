"""The state of a running server: its models, its queue, its counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from keras_transformer.serving.catalogue import Catalogue
from keras_transformer.serving.detection import Detector
from keras_transformer.serving.queue import Batcher
from keras_transformer.serving.settings import Settings


class Service:
    """State that all requests of a server share.

    Args:
        load: reads the models; called again by `reload`.
        settings: of the server.
    """

    def __init__(self, load: Callable[[], Catalogue], settings: Settings):
        self.settings = settings
        self._load = load
        self._reloading = asyncio.Lock()
        self.metrics = Metrics()
        self.catalogue, self.detector = self._read()
        self.batcher = Batcher(
            settings.tokens_per_batch, settings.delay, settings.most_waiting, self.metrics.watch
        )
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)

    def _read(self):
        catalogue = self._load()
        return catalogue, Detector(catalogue.sources)

    async def reload(self) -> None:
        """Reads the models again, and uses them from then on.

        What was accepted before is finished by the models it was accepted for.

        Raises:
            Exception: what reading raised; then the models stay.
        """
        async with self._reloading:
            self.catalogue, self.detector = await asyncio.to_thread(self._read)
            self.metrics.reloads.inc()

    async def close(self) -> None:
        """Finishes what was accepted."""
        await asyncio.to_thread(self.batcher.close)


class Metrics:
    """Counts for Prometheus."""

    def __init__(self):
        self._registry = registry = CollectorRegistry()
        name = "keras_transformer"
        self.requests = Counter(
            f"{name}_requests", "Requests answered.", ["path", "status"], registry=registry
        )
        self.seconds = Histogram(
            f"{name}_request_seconds",
            "From a request to its answer.",
            ["path"],
            registry=registry,
            buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )
        self.sentences = Counter(f"{name}_sentences", "Sentences translated.", registry=registry)
        self.tokens = Counter(f"{name}_source_tokens", "Their source tokens.", registry=registry)
        self.batch_sentences = Histogram(
            f"{name}_batch_sentences",
            "Sentences of a batch.",
            registry=registry,
            buckets=[2**i for i in range(11)],
        )
        self.batch_seconds = Histogram(
            f"{name}_batch_seconds", "Computing a batch.", registry=registry
        )
        self.waiting = Gauge(f"{name}_waiting_tokens", "Tokens that wait.", registry=registry)
        self.reloads = Counter(f"{name}_reloads", "Times models were swapped.", registry=registry)

    def watch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Enters a batch."""
        self.sentences.inc(sentences)
        self.tokens.inc(tokens)
        self.batch_sentences.observe(sentences)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """All of them, in Prometheus's format."""
        return prometheus_client.generate_latest(self._registry)
