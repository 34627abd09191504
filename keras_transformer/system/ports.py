"""Ports of this host that are free."""

from __future__ import annotations

import random
import socket

# Below those that systems give to outgoing connections, any of which could take one found free.
_PORTS = range(10_000, 32_000)


def free_port(count: int = 1) -> int:
    """Return a port of this host that is free, as are the next ones.

    Args:
        count: Number of ports in a row that are free.

    Raises:
        OSError: If a thousand tries found none.
    """
    chosen = random.SystemRandom()  # its own: a seed must not give two programs the same port
    for _ in range(1_000):
        first = chosen.choice(_PORTS)
        if all(map(_is_free, range(first, first + count))):
            return first
    raise OSError(f"found no {count} free ports in a row from {_PORTS.start} to {_PORTS.stop}")


def _is_free(port):
    with socket.socket() as one:
        try:
            one.bind(("", port))
        except OSError:
            return False
    return True
