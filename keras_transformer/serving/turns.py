"""Clients of the server, and a semaphore and threads that they use in turn."""

from __future__ import annotations

import asyncio
import contextvars
import ipaddress
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from keras_transformer.system import interruption

Result = TypeVar("Result")


def network(address: str) -> Hashable:
    """Return a client's network: its IPv4 address, or the 64-bit network of its IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket
        return address
    if isinstance(ip, ipaddress.IPv6Address) and not ip.ipv4_mapped:
        return ipaddress.ip_network((ip, 64), strict=False)
    return getattr(ip, "ipv4_mapped", None) or ip


class Client(NamedTuple):
    """The sender of a request: a network. Its requests with files count as another client."""

    network: Hashable
    sends_file: bool = False


current: contextvars.ContextVar[Client | None] = contextvars.ContextVar("client", default=None)


class Turns:
    """A semaphore that waiting clients acquire in turn.

    Args:
        places: Maximum number of tasks that hold it at once.
    """

    def __init__(self, places: int):
        self._free = places
        self._waiting: dict[Client | None, deque[asyncio.Future[None]]] = {}

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(current.get(), deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self._pass_on()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._pass_on()

    def _pass_on(self):
        """Pass the semaphore to the client whose turn it is; if no request waits, release it."""
        for client, places in list(self._waiting.items()):
            del self._waiting[client]
            while places:
                place = places.popleft()
                if not place.done():  # else its request was cancelled
                    if places:
                        self._waiting[client] = places  # at the end
                    return place.set_result(None)
        self._free += 1


class Workers:
    """Threads for work on texts. Clients take turns; work of a cancelled request is interrupted.

    Args:
        name: Name of the threads.
        count: Number of threads.
    """

    def __init__(self, name: str, count: int):
        self._turns, self._pool = Turns(count), ThreadPoolExecutor(count, name)

    async def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function in one of the threads, and return its result.

        If the request is cancelled, `interruption.check` raises in the function.
        """
        context, is_left = contextvars.copy_context(), threading.Event()

        def work():
            with interruption.given_up_if(is_left.is_set):
                return context.run(function, *args)

        async with self._turns:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
            finally:
                is_left.set()

    def close(self) -> None:
        """End the threads after their current calls; cancel calls that have not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
