"""Traces of requests, as a collector gets them."""

import http.server
import itertools
import sys
import threading

import pytest
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from keras_transformer.serving import Tracer, create_app
from keras_transformer.serving.traces import Trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


def spans_of(exporter):
    """Returns the spans by name, and those of a request in the order of their beginning."""
    found = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time)
    return {span.name: span for span in found}, [span.name for span in found]


@pytest.fixture
def traced(catalogue, exporter):
    with TestClient(create_app(lambda: catalogue, tracer=Tracer(exporter))) as client:
        yield client


def test_the_time_of_a_translation(traced, exporter):
    body = {"q": "one two. three.", "source": "en", "target": "de"}
    answer = traced.post("/translate", json=body, headers={"traceparent": PARENT})
    found, order = spans_of(exporter)
    assert order[:2] in (["POST /translate", "receive"], ["receive", "POST /translate"])
    assert order[2:] == ["queue", "batch", "search", "answer"]
    whole = found["POST /translate"]
    assert format(whole.context.trace_id, "032x") == PARENT[3:35]
    assert format(whole.parent.span_id, "016x") == PARENT[36:52]
    assert whole.attributes["http.response.status_code"] == 200
    assert whole.attributes["request_id"] == answer.headers["x-request-id"]
    parts = [found[name] for name in order if name != "POST /translate"]
    for one, next_one in itertools.pairwise(parts):
        assert one.parent.span_id == whole.context.span_id
        assert abs(one.end_time - next_one.start_time) < 1e6  # a millisecond
    assert parts[0].start_time == whole.start_time and parts[-1].end_time == whole.end_time
    searched = dict(found["search"].attributes)
    tokens = searched.pop("tokens")
    assert searched == {"model": "en-de", "version": "1", "own_texts": 2, "texts": 2}
    assert tokens > 4
    assert "one" not in str([span.attributes for span in found.values()])  # no texts of users


def test_two_models_in_a_row(traced, exporter):
    traced.post("/translate", json={"q": "one", "source": "en", "target": "fr"})
    found = [x.attributes["model"] for x in exporter.get_finished_spans() if x.name == "search"]
    assert found == ["en-de", "de-fr"]


def test_requests_that_are_not_computed(traced, exporter):
    traced.get("/health")
    assert traced.post("/translate", json={"q": "one"}).status_code == 400
    found, order = spans_of(exporter)
    assert order == ["POST /translate"]
    assert found["POST /translate"].attributes["http.response.status_code"] == 400
    assert found["POST /translate"].status.is_unset


def test_replies_of_language_models(chats, exporter):
    with TestClient(create_app(lambda: chats, tracer=Tracer(exporter))) as client:
        body = {"model": "poet", "prompt": "one two", "max_tokens": 3, "temperature": 0}
        assert client.post("/v1/completions", json=body).is_success
    found, order = spans_of(exporter)
    assert order[2:] == ["queue", "search", "answer"]
    assert 1 <= found["search"].attributes["tokens"] <= 4


@pytest.mark.once("times only; no tensors")
def test_errors_of_the_server(exporter):
    tracer = Tracer(exporter)
    tracer.send(Trace(), "POST /x", 0.0, {}, 500)
    assert not exporter.get_finished_spans()[0].status.is_ok


@pytest.mark.once("sends over HTTP; no tensors")
def test_spans_reach_a_collector(monkeypatch):
    got = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    tracer = Tracer()
    trace = Trace()
    trace.add("search", 1.0, 2.0, model="en-de")
    tracer.send(trace, "POST /translate", 0.0, {}, 200)
    tracer.close()
    server.shutdown()
    ((path, body),) = got
    assert path == "/v1/traces"
    assert b"POST /translate" in body and b"en-de" in body and b"keras_transformer" in body


@pytest.mark.once("imports only; no tensors")
def test_the_extra_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(ImportError, match='tracing requests needs the extra "traces"'):
        Tracer()
