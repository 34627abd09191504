"""Who leaves is not worked for."""

import socket
import threading
import time

import pytest

from keras_transformer.serving import create_app

pytestmark = pytest.mark.once("requests and answers: the translator alone knows tensors")


def test_a_client_that_leaves_is_not_translated(catalogue, served, monkeypatch):
    app = create_app(lambda: catalogue)
    with served(app) as url:
        host, port = url.removeprefix("http://").split(":")
        service = app.state.service
        handler = service.catalogue.route("en", "de")[0]
        gate, texts, search = threading.Event(), [], handler.search

        def slow(batch, *options):
            gate.wait(30)
            texts.extend(batch)
            return search(batch, *options)

        monkeypatch.setattr(handler, "search", slow)
        body = b'{"q": "%s", "source": "en", "target": "de"}'
        for word in (b"one", b"two", b"six"):  # the first is computed, the others wait
            given = body % word
            one = socket.create_connection((host, int(port)))
            head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(given)}\r\n"
            one.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + given)
            until(lambda: service.batcher.waiting or word != b"one")  # noqa: B023
            until(lambda: not service.batcher.waiting or word != b"one")  # noqa: B023
            until(lambda: word == b"one" or len(service.batcher._waiting) == 1)  # noqa: B023
            one.close()
            until(lambda: not service.batcher.waiting)
        gate.set()
        until(lambda: not service.batcher._waiting)
        assert texts in ([], ["one"])
        assert b'status="499"' in service.metrics.text()


def test_a_client_that_leaves_in_its_body(catalogue, served):
    app = create_app(lambda: catalogue)
    with served(app) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as one:
            one.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        metrics = app.state.service.metrics
        until(lambda: b"requests_total{" in metrics.text())
        assert b'status="499"' in metrics.text() and b'status="500"' not in metrics.text()


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
