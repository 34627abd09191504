"""Health, readiness and metrics of the server."""

from __future__ import annotations

import time

import prometheus_client
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from keras_transformer.serving.queue import Batch
from keras_transformer.serving.replies import ReplyJob

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)  # bounds of histograms
router = APIRouter(tags=["server"])


@router.head("/health", include_in_schema=False)
@router.get("/health")
async def health(request: Request) -> dict[str, str]:
    """Return ok if the server can compute answers, else 503 with the reason."""
    if reason := request.app.state.service.is_broken():
        raise HTTPException(503, reason)
    return {"status": "ok"}


@router.head("/ready", include_in_schema=False)
@router.get("/ready")
async def ready(request: Request) -> dict[str, str]:
    """Return ok if the server can answer requests now, else 503 with the reason.

    Ready means: `/health` is ok, all translators are warm, and the server is not stopping.
    """
    service = request.app.state.service
    reason = service.is_broken() or (service.is_stopping and "the server is stopping")
    if reason or service.is_warming():
        raise HTTPException(503, reason or "the first translations of the models are computed")
    return {"status": "ok"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus; if the server has API keys, a request must send one."""
    request.app.state.guard.check(request)
    return PlainTextResponse(request.app.state.service.metrics.text())


class Metrics:
    """The server's counters, gauges and histograms for Prometheus, in a registry of their own."""

    def __init__(self):
        self._registry = CollectorRegistry()

        def make(kind, name, text, labels=(), **options):
            name = f"keras_transformer_{name}"
            return kind(name, text, labels, registry=self._registry, **options)

        long = dict(buckets=SECONDS)
        self.requests = make(Counter, "requests", "Requests answered.", ["path", "status"])
        text = "Seconds from a request to its answer."
        self.seconds = make(Histogram, "request_seconds", text, ["path"], **long)
        text = "Requests that are being answered."
        self.in_flight = make(Gauge, "requests_in_flight", text)
        text = "Requests refused with 429, by what is at its limit: address, key or queue."
        self.refusals = make(Counter, "refusals", text, ["reason"])
        self.keys = make(Counter, "key_requests", "Requests with each API key.", ["key"])
        names = ["model", "version"]
        self.sentences = make(Counter, "sentences", "Texts computed in batches.", names)
        self.tokens = make(Counter, "source_tokens", "Tokens of these texts.", names)
        text = "Seconds that a request waits for its first batch."
        self.queue_seconds = make(Histogram, "queue_seconds", text, **long)
        powers = [2**i for i in range(11)]
        text = "Sentences per batch."
        self.batch_sentences = make(Histogram, "batch_sentences", text, buckets=powers)
        self.batch_seconds = make(Histogram, "batch_seconds", "Seconds to compute a batch.", names)
        self.waiting = make(Gauge, "waiting_tokens", "Tokens in the queue.")
        self.slots = make(Gauge, "slots", "Replies that are being written.")
        text = "Tokens of prompts, and whether they were read or kept from earlier prompts."
        self.read = make(Counter, "prompt_tokens", text, ["source"])
        self.written = make(Counter, "reply_tokens", "Tokens of replies of language models.")
        text = "Seconds from a request to the first token of its reply."
        self.first_token = make(Histogram, "first_token_seconds", text, **long)
        self.reloads = make(Counter, "reloads", "Reloads of the models.")
        self.replicas = make(Gauge, "replicas", "Processes that can compute batches.")
        text = "Restarts of replicas that ended."
        self.restarts = make(Counter, "replica_restarts", text)

    def watch(self, batch: Batch) -> None:
        """Add a batch to the metrics of sentences, tokens, waiting times and computing times."""
        sentences, tokens, seconds, waits, *names = batch
        self.sentences.labels(*names).inc(sentences)
        self.tokens.labels(*names).inc(tokens)
        for wait in waits:
            self.queue_seconds.observe(wait)
        self.batch_sentences.observe(sentences)
        self.batch_seconds.labels(*names).observe(seconds)

    def watch_token(self, job: ReplyJob, is_first: bool) -> None:
        """Count a token of a reply; with the first, record its delay and the prompt's tokens."""
        self.written.inc()
        if is_first:
            self.first_token.observe(time.monotonic() - job.arrived)
            self.read.labels("kept").inc(job.reused)
            self.read.labels("read").inc(len(job.prompt_ids) - job.reused)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return prometheus_client.generate_latest(self._registry)
