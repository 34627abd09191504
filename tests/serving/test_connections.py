"""Connections that are silent, and too many of them."""

import socket
import ssl
import threading
import time
import urllib.request
from pathlib import Path

import pytest
import uvicorn

from keras_transformer.serving import connections, create_app, listen, tls_files

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


def test_https(catalogue, tmp_path):
    path = Path(__file__).parent / "files" / "localhost.pem"  # of a key made for this test
    options = tls_files(path, None)
    app = create_app(lambda: catalogue)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    context = ssl.create_default_context(cafile=path)
    url = f"https://127.0.0.1:{port}/health"
    assert urllib.request.urlopen(url, context=context).status == 200
    server.should_exit = True
    thread.join()

    assert tls_files(None, None) == {}
    (tmp_path / "other").write_text("no key")
    for certificate, key in ((path, tmp_path / "other"), (tmp_path / "none", None)):
        with pytest.raises(ValueError, match="tls_certificate and tls_key must be a certificate"):
            tls_files(certificate, key)
    with pytest.raises(ValueError, match="tls_key must be given with tls_certificate"):
        tls_files(None, path)
