"""Requests that hide a second one: their body has a Content-Length and a Transfer-Encoding."""

import socket

SECONDS, MEGABYTES = 20, 100
LENGTHS = b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"


def attack(url):
    host, port = url.removeprefix("http://").split(":")
    for _ in range(100):
        with socket.create_connection((host, int(port)), timeout=10) as one:
            head = b"POST /detect HTTP/1.1\r\nHost: localhost\r\n" + LENGTHS
            one.sendall(head + b"\r\n0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            found = b""
            while part := one.recv(10_000):
                found += part
        assert found.startswith(b"HTTP/1.1 400") and found.count(b"HTTP/1.1 ") == 1, found
