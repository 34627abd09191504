"""Connections of the processes of a run, for all that is not a tensor.

The frameworks move the tensors. They end a process without a word of who is missing (JAX 0.10), so
the processes meet before that over plain connections to process 0, and use these later for all
that is not a tensor: comparing their options, writing a checkpoint together, stopping together.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from keras_transformer.backend import BACKEND, join_processes
from keras_transformer.distribution.places import Place, place_in
from keras_transformer.system.files import replacing

TIMEOUT = "KERAS_TRANSFORMER_JOIN_SECONDS"  # environment variable; seconds to wait for processes
_SECONDS = 300.0


class Processes:
    """The processes of a run, seen from one of them.

    Args:
        place: The place of this process.
        seconds: Seconds to wait for the others.

    Attributes:
        index: Number of this process, from 0.
        count: Number of processes.

    Raises:
        TimeoutError: If a process has not come in time, or two came with one index; names them.
    """

    def __init__(self, place: Place, seconds: float = _SECONDS):
        self.place, self.index, self.count = place, place.index, place.count
        self._others: dict[int, Any] = {}  # by index, the ends of the connections
        if self.count > 1:
            try:
                self._meet(time.monotonic() + seconds, seconds)
            except BaseException:
                self.close()
                raise

    def exchange(self, value: Any) -> list[Any]:
        """Return the values that the processes give, in their order; all must call it.

        Args:
            value: A plain value, as JSON has them.

        Raises:
            ConnectionError: If another process has ended.
        """
        if self.count == 1:
            return [value]
        if self.index:
            self._send(0, value)
            return self._receive(0)
        values = [value, *map(self._receive, range(1, self.count))]
        for index in range(1, self.count):
            self._send(index, values)
        return values

    def agree(self, facts: dict[str, Any]) -> None:
        """Check that all processes have the same facts.

        Args:
            facts: Plain values by name.

        Raises:
            ValueError: If a process differs; the message names it, the fact and both values.
        """
        first, *others = self.exchange(facts)
        for index, other in enumerate(others, 1):
            differing = [k for k in first.keys() | other.keys() if first.get(k) != other.get(k)]
            for name in sorted(differing)[:1]:
                raise ValueError(
                    f"all processes must have the same {name}, got {first.get(name)!r} in "
                    f"process 0 and {other.get(name)!r} in process {index}"
                )

    @contextlib.contextmanager
    def replacing(self, path: str | os.PathLike) -> Iterator[Path]:
        """Yield a folder that all processes write into; process 0 moves it to `path` at the end.

        As `system.files.replacing`: an error in one process leaves the old folder as it was.
        """
        if self.index:
            yield Path(self.exchange(None)[0])
            self.exchange(None)
            self.exchange(None)
            return
        with replacing(path) as folder:
            folder.mkdir()
            self.exchange(os.fspath(folder))
            yield folder
            self.exchange(None)  # all have written
        self.exchange(None)  # it is in its place

    def close(self) -> None:
        """End the connections."""
        for stream in self._others.values():
            with contextlib.suppress(OSError):
                stream.close()
        self._others = {}

    def _meet(self, deadline, seconds):
        host, port = self.place.address.rsplit(":", 1)
        if self.index:
            self._others[0] = _connected(host, int(port) + 1, deadline, seconds)
            self._send(0, self.index)
            if lost := self._receive(0):
                raise TimeoutError(lost)
            return
        strangers = self._gather(int(port) + 1, deadline)
        missing = [str(x) for x in range(1, self.count) if x not in self._others]
        wrong = ""
        if missing:
            names = f"process{'es' * (len(missing) > 1)} {', '.join(missing)}"
            wrong = f"{names} of {self.count} did not come within {seconds:g} s"
        if strangers:
            wrong = f"processes must have their own index from 0 to {self.count - 1}; {strangers}"
        for index in self._others:
            self._send(index, wrong)
        if wrong:
            raise TimeoutError(wrong)

    def _gather(self, port, deadline):
        """Wait for all, and return what was wrong with one."""
        with socket.create_server(("", port)) as server:
            while len(self._others) < self.count - 1 and (left := deadline - time.monotonic()) > 0:
                server.settimeout(left)
                try:
                    stream = _stream(server.accept()[0])
                    index = json.loads(stream.readline())
                except (TimeoutError, ValueError):  # the time is over; not one of ours
                    continue
                if not 0 < index < self.count or index in self._others:
                    self._others[-1] = stream
                    return f"{index} came{' twice' if index in self._others else ''}"
                self._others[index] = stream
        return ""

    def _send(self, index, value):
        try:
            self._others[index].write(json.dumps(value) + "\n")
            self._others[index].flush()
        except (OSError, ValueError, KeyError) as error:
            raise ConnectionError(f"process {index} of {self.count} has ended") from error

    def _receive(self, index):
        try:
            return json.loads(self._others[index].readline())
        except (OSError, ValueError, KeyError) as error:  # ValueError: nothing was read
            raise ConnectionError(f"process {index} of {self.count} has ended") from error


def _connected(host, port, deadline, seconds):
    while True:
        try:
            return _stream(socket.create_connection((host, port), timeout=5))
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"process 0 did not answer at {host}:{port} within {seconds:g} s: {error}"
                ) from error
            time.sleep(0.1)


def _stream(connection):
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.makefile("rw", encoding="utf-8")


_joined = [Processes(Place())]


def current() -> Processes:
    """Return the processes that `join` has joined, else this one alone."""
    return _joined[-1]


def join() -> Processes:
    """Join the processes that the environment names (`place_in`), once; before any computation.

    Raises:
        TimeoutError: If a process does not come within `KERAS_TRANSFORMER_JOIN_SECONDS` (300).
        ValueError: If processes have different versions or backends.
        NotImplementedError: If the backend trains in one process only.
    """
    place = place_in(os.environ)
    if place.count == 1 or current().count > 1:
        return current()
    if BACKEND == "tensorflow":
        raise NotImplementedError(
            f"training in several processes needs JAX or PyTorch, got TensorFlow in {place.count} "
            "processes: with TensorFlow, one process trains on all devices of its host"
        )
    team = Processes(place, float(os.environ.get(TIMEOUT, _SECONDS)))
    facts = {"backend": BACKEND}
    facts |= {f"version of {x}": version(x) for x in ("transformer-for-keras", "keras", BACKEND)}
    team.agree(facts)
    join_processes(place.index, place.count, place.address, place.local)
    _joined.append(team)
    return team


def leave() -> None:
    """Go on alone."""
    while len(_joined) > 1:
        _joined.pop().close()
