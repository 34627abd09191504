"""The open connections of a server, shared fairly among its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

SHORTEST_SILENCE = 1.0  # seconds after which an idle connection may be closed to admit another


class Member(Protocol):
    """Interface of the connections in a `Crowd`."""

    owner: Hashable  # the client
    transport: asyncio.Transport

    def is_idle(self) -> bool:
        """Return whether the server waits for the client: for a request, or for it to read."""


class Crowd:
    """The open connections of a server, limited in all and for each client.

    A client is an IPv4 address or a /64 network of IPv6. It may have half of the connections; for
    one more, one of its own is closed. If `most` connections are open, one of the client with the
    most connections is closed; if none of these is idle, one of the client with the next most. Of
    a client's connections, the one that has been idle longest is closed, if for at least a second.
    If no connection can be closed, the new one is refused.

    Args:
        most: Maximum number of open connections.
    """

    def __init__(self, most: int):
        self._most = most
        # The connections of each client with the time of their last activity, oldest first.
        self._members: dict[Hashable, dict[Member, float]] = {}

    def has_room(self, client: Hashable, now: float) -> bool:
        """Return whether a client may have one more connection; close an idle one if needed."""
        connections = self._members.get(client, {})
        if len(connections) >= max(self._most // 2, 1):
            crowds = [connections]
        elif sum(map(len, self._members.values())) >= self._most:
            crowds = sorted(self._members.values(), key=len, reverse=True)
        else:
            return True
        for crowd in crowds:
            for connection, moved in crowd.items():
                if moved > now - SHORTEST_SILENCE:
                    break
                if connection.is_idle():
                    connection.transport.abort()
                    self.leave(connection)
                    return True
        return False

    def note(self, connection: Member, now: float) -> None:
        """Note that a connection is new, or that its client has sent or read something."""
        connections = self._members.setdefault(connection.owner, {})
        connections.pop(connection, None)
        connections[connection] = now

    def leave(self, connection: Member) -> None:
        """Remove a connection that is closed."""
        connections = self._members.get(connection.owner, {})
        connections.pop(connection, None)
        if not connections:
            self._members.pop(connection.owner, None)
