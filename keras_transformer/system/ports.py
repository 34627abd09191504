"""Search for free TCP ports of this host."""

from __future__ import annotations

import random
import socket

# Below the ports that systems give to outgoing connections: such a connection could take a port
# that has just been found free.
_PORTS = range(10_000, 32_000)


def free_port(count: int = 1) -> int:
    """Return the first of `count` consecutive free ports of this host.

    Args:
        count: Number of consecutive ports.

    Raises:
        OSError: If none of 1,000 random tries succeeds.
    """
    chosen = random.SystemRandom()  # unseeded: programs with the same seed need different ports
    for _ in range(1_000):
        first = chosen.choice(_PORTS)
        if all(map(_is_free, range(first, first + count))):
            return first
    raise OSError(f"found no {count} free ports in a row from {_PORTS.start} to {_PORTS.stop}")


def _is_free(port):
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True
