"""Connections that are silent, and too many of them."""

import socket
import time
import urllib.request

import pytest

from keras_transformer.serving import connections, create_app, listen

pytestmark = pytest.mark.once("connections: no tensor is read")


def connected(url):
    host, port = url.removeprefix("http://").split(":")
    one = socket.create_connection((host, int(port)))
    one.settimeout(20)
    return one


def test_silent_connections_are_closed(catalogue, served, monkeypatch):
    monkeypatch.setattr(connections, "LONGEST_SILENCE", 0.5)
    with served(create_app(lambda: catalogue)) as url:
        begun = time.monotonic()
        assert connected(url).recv(10) == b""
        again = connected(url)
        again.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert again.recv(1000).startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /health HTTP/1.1\r\n")  # and no more
        while again.recv(1000):
            pass
        slow = connected(url)
        with pytest.raises(OSError):
            for letter in b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 1000:
                slow.sendall(bytes([letter]))
                time.sleep(0.02)
        assert time.monotonic() - begun < 15


def test_too_many_connections_are_closed(catalogue, served, monkeypatch):
    monkeypatch.setattr(connections, "MOST", 3)
    with served(create_app(lambda: catalogue)) as url:
        held = [connected(url) for _ in range(3)]
        time.sleep(0.2)
        with pytest.raises(OSError):
            if connected(url).recv(10) == b"":
                raise ConnectionResetError
        held.pop().close()
        time.sleep(0.2)
        assert urllib.request.urlopen(f"{url}/health").status == 200


def test_an_address_in_use():
    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"host and port must be free, got 127.0.0.1:{port}"):
            listen("127.0.0.1", port)
    with pytest.raises(ValueError, match="got no.such.host.invalid:0"):
        listen("no.such.host.invalid", 0)
