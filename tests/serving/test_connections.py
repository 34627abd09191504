"""Connections that are silent, and too many of them."""

import asyncio
import http.client
import socket
import ssl
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
import uvicorn
from fastapi import FastAPI, Response

from keras_transformer.serving import Settings, connections, create_app, crowd, listen, tls_files

pytestmark = pytest.mark.once("connections: no tensor is read")


def connected(url, source="127.0.0.1"):
    host, port = url.removeprefix("http://").split(":")
    one = socket.create_connection((host, int(port)), source_address=(source, 0))
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


def is_open(one):
    """Whether the server still holds a connection on which nothing was asked."""
    one.setblocking(False)
    try:
        return one.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def status(url, source="127.0.0.1"):
    """The status that a client of another address gets for a new connection; None: it is closed."""
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), 20, (source, 0))
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@pytest.fixture
def plain():
    """An application without models."""
    app = FastAPI()

    @app.get("/health")
    async def health():
        return {}

    return app


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2 and /proc")


@linux
def test_a_client_has_half_of_the_connections(plain, served, monkeypatch):
    monkeypatch.setattr(crowd, "SHORTEST_SILENCE", 0.02)
    monkeypatch.setattr(connections, "MOST", 6)
    with served(plain) as url:
        held = []
        for _ in range(5):
            held.append(connected(url))
            time.sleep(0.05)
        # The oldest make room for new ones.
        assert [is_open(one) for one in held] == [False, False, True, True, True]
        assert status(url) == status(url, "127.0.0.2") == 200
        monkeypatch.setattr(crowd, "SHORTEST_SILENCE", 60)
        held.append(connected(url))
        assert status(url) is None and is_open(held[-1])


@linux
def test_the_client_with_most_connections_makes_room(plain, served, monkeypatch):
    monkeypatch.setattr(crowd, "SHORTEST_SILENCE", 0.02)
    monkeypatch.setattr(connections, "MOST", 5)
    with served(plain) as url:
        held = []
        for source in ("127.0.0.2", "127.0.0.1", "127.0.0.1", "127.0.0.3", "127.0.0.4"):
            held.append(connected(url, source))
            time.sleep(0.05)
        assert all(map(is_open, held)) and status(url, "127.0.0.5") == 200
        assert [is_open(one) for one in held] == [True, False, True, True, True]


@linux
def test_connections_that_wait_for_the_server_stay(plain, served, monkeypatch):
    monkeypatch.setattr(connections, "MOST", 4)
    go = threading.Event()

    @plain.get("/slow")
    async def slow():
        while not go.is_set():
            await asyncio.sleep(0.01)

    with served(plain) as url:
        held = [connected(url) for _ in range(2)]
        for one in held:
            one.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.2)
        assert status(url) is None and status(url, "127.0.0.2") == 200
        go.set()
        assert all(one.recv(1000).startswith(b"HTTP/1.1 200") for one in held)


@linux
@pytest.mark.parametrize("is_last", [False, True], ids=["keep-alive", "close"])
def test_who_does_not_read_is_closed(served, monkeypatch, is_last):
    monkeypatch.setattr(connections, "LONGEST_SILENCE", 0.3)
    app, content = FastAPI(), bytes(20_000_000)

    @app.get("/")
    async def large():
        return Response(content)

    header = b"Connection: close\r\n" if is_last else b""
    with served(app) as url:
        port = int(url.rpartition(":")[2])
        deaf, slow = socket.socket(), socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        for one in (deaf, slow):
            one.settimeout(20)
            one.connect(("127.0.0.1", port))
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n")
        begun = time.monotonic()
        while time.monotonic() - begun < 1.5:  # slowly, but without a long pause
            assert slow.recv(20_000)
            time.sleep(0.01)
        assert is_held(slow, port) and not is_held(deaf, port)
        for one in (deaf, slow):
            one.close()


def is_held(one, port):
    """Whether this process, the server, holds the other end of a connection."""
    client = one.getsockname()[1]
    pairs = (line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    ends = {tuple(int(x.split(":")[1], 16) for x in pair[:2]): pair[2] for pair in pairs}
    return ends.get((port, client)) == "01"  # established


LENGTH, CHUNKED = b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"
PREFLIGHT = b"Origin: http://x\r\nAccess-Control-Request-Method: POST\r\n"
TWO_LENGTHS = {
    "length first": b"POST /detect HTTP/1.1\r\n" + LENGTH + CHUNKED,
    "length last": b"POST /detect HTTP/1.1\r\n" + CHUNKED + LENGTH,
    "preflight": b"OPTIONS / HTTP/1.1\r\n" + CHUNKED + LENGTH + PREFLIGHT,
    "HTTP/1.0": b"POST /detect HTTP/1.0\r\n" + CHUNKED,
}


def test_a_body_with_two_lengths_is_refused(catalogue, served):
    app = create_app(lambda: catalogue, Settings(allowed_origins=("*",)))
    with served(app) as url:
        for name, head in TWO_LENGTHS.items():
            one, found = connected(url), b""
            hidden = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
            one.sendall(head + b"Host: x\r\n\r\n0\r\n\r\n" + hidden)
            while part := one.recv(10_000):
                found += part
            assert found.startswith(b"HTTP/1.1 400") and found.count(b"HTTP/1.1 ") == 1, name


@pytest.mark.parametrize("limit,most", [(100, 12), (200, 45), (3064, 1000), (5000, 1000)])
def test_the_limit_of_open_files_bounds_connections(limit, most, monkeypatch, caplog):
    resource = pytest.importorskip("resource")
    limits = [50, limit]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: tuple(limits))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.__setitem__(0, pair[0]))
    with caplog.at_level("WARNING"):
        assert connections._connections() == most
    assert limits[0] == min(limit, 3064)
    assert ("open files allows" in caplog.text) == (most < 1000)


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
