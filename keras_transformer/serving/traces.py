"""Traces of requests for OpenTelemetry: where their time goes, sent to a collector."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from keras_transformer.system.extras import missing


class Span(NamedTuple):
    """A part of a request's time, in seconds of `time.monotonic`."""

    name: str
    begun: float
    ended: float
    attributes: Mapping[str, Any]


class Trace:
    """The parts of a request's time so far; other threads add to them.

    `queue` is the time in which all threads, or slots, are busy with other requests, `batch` that
    in which a free thread waits for more texts (`delay`), and `search` that of computing.
    """

    def __init__(self):
        self.spans: list[Span] = []

    def add(self, name: str, begun: float, ended: float, **attributes: Any) -> None:
        """Note what happened, in seconds of `time.monotonic`."""
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
        """Note that a batch was computed with texts of the request.

        Args:
            since: When the request came, and when a thread became free; None: not its first batch.
            begun, ended: When the batch was computed.
            own_texts, texts, tokens: Number of texts of the request, and of texts and tokens.
            model, version: What computed it.
        """
        if since:
            free = max(since)
            self.add("queue", since[0], free)
            self.add("batch", free, begun)
        facts = dict(own_texts=own_texts, texts=texts, tokens=tokens, model=model, version=version)
        self.add("search", begun, ended, **facts)


current: ContextVar[Trace | None] = ContextVar("trace", default=None)  # of this request


class Tracer:
    """Sends traces to a collector.

    `OTEL_EXPORTER_OTLP_ENDPOINT` is its address, by default http://localhost:4318. The other
    variables of OpenTelemetry hold too: of the sampler, the headers, the name of the service.

    Args:
        exporter: A `SpanExporter` to use instead, which gets each span when its request ends.

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
        own = {} if named else {resources.SERVICE_NAME: "keras_transformer"}
        self._provider = trace.TracerProvider(resource=resources.Resource.create(own))
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
            found: What happened to it.
            name: Its method and path.
            begun: When it came, in seconds of `time.monotonic`.
            headers: Its headers, of which `traceparent` names the client's span.
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
        """Send what is left."""
        self._provider.shutdown()


def _with_ends(spans, begun, ended):
    """Add the time before the first span, `receive`, and that after the last one, `answer`."""
    if not spans:
        return []
    first, last = min(x.begun for x in spans), max(x.ended for x in spans)
    return [Span("receive", begun, first, {}), *spans, Span("answer", last, ended, {})]
