"""Traces of requests for OpenTelemetry: the times of their phases, sent to a collector."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from keras_transformer.system.extras import missing


class Span(NamedTuple):
    """A named phase of a request; its times are in seconds of `time.monotonic`."""

    name: str
    begun: float
    ended: float
    attributes: Mapping[str, Any]


class Trace:
    """The phases of a request so far; other threads add to them.

    `queue` is the time in which all threads or slots are busy with other requests, `batch` the time
    in which a free thread waits for more texts (`delay`), and `search` the time in which a batch is
    computed, or a reply written.
    """

    def __init__(self):
        self.spans: list[Span] = []

    def add(self, name: str, begun: float, ended: float, **attributes: Any) -> None:
        """Add a phase; times are in seconds of `time.monotonic`."""
        self.spans.append(Span(name, begun, ended, attributes))

    def add_batch(
        self,
        since: tuple[float, float] | None,
        begun: float,
        ended: float,
        own_texts: int,
        texts: int,
        tokens: int,
        model: str,
        version: str,
    ) -> None:
        """Add the phases of a batch that had texts of the request.

        Args:
            since: When the request came, and when a thread became free; None if this is not its
                first batch.
            begun, ended: When the batch was computed.
            own_texts: Number of texts of this request in the batch.
            texts, tokens: Numbers of all texts and tokens in the batch.
            model, version: Name and version of the model.
        """
        if since:
            free = max(since)
            self.add("queue", since[0], free)
            self.add("batch", free, begun)
        facts = dict(own_texts=own_texts, texts=texts, tokens=tokens, model=model, version=version)
        self.add("search", begun, ended, **facts)


current: ContextVar[Trace | None] = ContextVar("trace", default=None)  # the trace of this request


class Tracer:
    """A sender of traces to an OpenTelemetry collector.

    The variable `OTEL_EXPORTER_OTLP_ENDPOINT` is the collector's address, by default
    http://localhost:4318. Other variables of OpenTelemetry have their effect too: sampler, headers,
    name of the service.

    Args:
        exporter: `SpanExporter` that gets each span when its request ends; None: one for the
            collector.

    Raises:
        ImportError: If the extra "traces" is not installed.
    """

    def __init__(self, exporter: Any = None):
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk import resources, trace
            from opentelemetry.sdk.trace import export
        except ImportError as error:
            raise missing("tracing requests", "traces") from error
        named = "OTEL_SERVICE_NAME" in os.environ
        attributes = {} if named else {resources.SERVICE_NAME: "keras_transformer"}
        self._provider = trace.TracerProvider(resource=resources.Resource.create(attributes))
        if exporter is None:
            processor: Any = export.BatchSpanProcessor(OTLPSpanExporter())
        else:
            processor = export.SimpleSpanProcessor(exporter)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("keras_transformer")

    def send(
        self,
        found: Trace,
        name: str,
        begun: float,
        headers: Mapping[str, str],
        status: int,
        **attributes: Any,
    ) -> None:
        """Send the trace of a request that ends now.

        Args:
            found: Phases of the request.
            name: Method and path of the request.
            begun: When the request came, in seconds of `time.monotonic`.
            headers: Headers of the request; `traceparent` names the client's span.
            status: Status of the answer.
            attributes: Attributes of the request's span.
        """
        from opentelemetry import propagate, trace

        ended, offset = time.monotonic(), time.time() - time.monotonic()

        def at(seconds):
            return int(1e9 * (seconds + offset))

        whole = self._tracer.start_span(
            name,
            propagate.extract(headers),
            trace.SpanKind.SERVER,
            {"http.response.status_code": status, **attributes},
            start_time=at(begun),
        )
        if status >= 500:
            whole.set_status(trace.StatusCode.ERROR)
        inside = trace.set_span_in_context(whole)
        for span in _with_ends(found.spans, begun, ended):
            part = self._tracer.start_span(
                span.name, inside, attributes=dict(span.attributes), start_time=at(span.begun)
            )
            part.end(at(span.ended))
        whole.end(at(ended))

    def close(self) -> None:
        """Send the remaining traces, and stop."""
        self._provider.shutdown()


def _with_ends(spans, begun, ended):
    """Add spans `receive` and `answer` before and after the spans; return [] if there are none."""
    if not spans:
        return []
    first, last = min(x.begun for x in spans), max(x.ended for x in spans)
    return [Span("receive", begun, first, {}), *spans, Span("answer", last, ended, {})]
