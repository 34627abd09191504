"""The open connections of a server, shared fairly among its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

SHORTEST_SILENCE = 1.0  # seconds after which an idle connection may make room for another


class Member(Protocol):
    """A connection."""

    owner: Hashable  # the client
    transport: asyncio.Transport

    def is_idle(self) -> bool:
        """Whether it is the client's turn."""


class Crowd:
    """The open connections of a server: how many there may be, and of which client.

    A client, which is an address or an IPv6 network of 64 bits, may have half of the connections.
    If it wants more, or if all are open, the connection makes room that has waited longest for the
    client that has most, if for a second or more.

    Args:
        most: Maximum number of open connections.
    """

    def __init__(self, most: int):
        self._most = most
        # By client, the one that moved first before the others, with its time.
        self._members: dict[Hashable, dict[Member, float]] = {}

    def has_room(self, client: Hashable, now: float) -> bool:
        """Whether a client may have one more connection; another may be closed for it."""
        own = self._members.get(client, {})
        if len(own) >= max(self._most // 2, 1):
            crowds = [own]
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
        own = self._members.setdefault(connection.owner, {})
        own.pop(connection, None)
        own[connection] = now

    def leave(self, connection: Member) -> None:
        """Forget a connection."""
        own = self._members.get(connection.owner, {})
        own.pop(connection, None)
        if not own:
            self._members.pop(connection.owner, None)
