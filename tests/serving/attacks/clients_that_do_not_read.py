"""1,050 connections, more than there may be, that ask for a megabyte and read nothing."""

import contextlib
import socket
import time

import httpx

SECONDS, MEGABYTES = 40, 300
ASKED = b"GET /static-offline-docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n"


def attack(url):
    assert len(httpx.get(f"{url}/static-offline-docs/swagger-ui-bundle.js").content) > 1_000_000
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as held:
        for _ in range(1050):
            one = held.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.settimeout(10)
            one.connect((host, int(port)))
            with contextlib.suppress(OSError):  # refused
                one.sendall(ASKED)
            time.sleep(0.01)  # a flood of requests is another attack
        begun, answered = time.monotonic(), 0
        while answered < 5:  # at the same address, when all others wait for their clients
            assert time.monotonic() - begun < 20
            with contextlib.suppress(httpx.TransportError):
                answered += httpx.get(f"{url}/health", timeout=5).status_code == 200
            time.sleep(0.2)
