"""TCP connections between the processes of a run, for everything except tensors.

The backends exchange the tensors. If a process is missing, JAX (0.10) ends the others without
naming it, so all processes first connect to process 0. Later they use these connections to compare
their options, to write a checkpoint together, and to stop together.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import random
import socket
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras

from keras_transformer.backend import BACKEND, join_processes
from keras_transformer.config import require
from keras_transformer.distribution.places import Place, place_in
from keras_transformer.system.files import replacing

TIMEOUT = "KERAS_TRANSFORMER_JOIN_SECONDS"  # environment variable; seconds to wait for processes
_SECONDS = 300.0
_GREETING = 10.0  # seconds in which a process that has connected must send its index
# A lost host is noticed after 3 minutes; the default of operating systems is 2 hours.
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 30, "TCP_KEEPCNT": 4}


class Processes:
    """The processes of a run, seen from one of them.

    Args:
        place: The place of this process.
        seconds: Seconds to wait for the other processes.

    Attributes:
        place: The place of this process.
        index: Number of this process, from 0.
        count: Number of processes.

    Raises:
        TimeoutError: If a process does not connect in time, or has an index that is out of range
            or taken; the message names it.
        OSError: If process 0 cannot listen at its ports.
    """

    def __init__(self, place: Place, seconds: float = _SECONDS):
        self.place, self.index, self.count = place, place.index, place.count
        self._others: dict[int, _Connection] = {}  # by index
        if self.count > 1:
            try:
                self._meet(time.monotonic() + seconds, seconds)
            except BaseException:
                self.close()
                raise

    def exchange(self, value: Any) -> list[Any]:
        """Return the values of all processes, in the order of their indices; all must call it.

        Args:
            value: A value of a JSON type.

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

        See `system.files.replacing`: an error in one process leaves the old folder unchanged.
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
            self.exchange(None)  # a barrier: all have written
        self.exchange(None)  # the folder is in its place

    def close(self) -> None:
        """Close the connections to the other processes."""
        for connection in self._others.values():
            connection.close()
        self._others = {}

    def _meet(self, deadline, seconds):
        """Connect to process 0, or as process 0 wait for the others; raise if one is missing."""
        host, port = self.place.address.rsplit(":", 1)
        if self.index:
            self._others[0] = _connected(host, int(port) + 1, deadline, seconds)
            self._send(0, self.index)
            # Wait longer than process 0 does: its answer names the processes that are missing.
            self._others[0].limit(seconds + _GREETING)
            if lost := self._receive(0):
                raise TimeoutError(lost)
            self._others[0].limit(None)
            return
        strangers = self._gather(int(port) + 1, deadline)
        missing = [str(x) for x in range(1, self.count) if x not in self._others]
        wrong = ""
        if missing:
            names = f"process{'es' * (len(missing) > 1)} {', '.join(missing)}"
            wrong = f"{names} of {self.count} did not come within {seconds:g} s"
        if strangers:
            wrong = f"processes must have their own index from 0 to {self.count - 1}; {strangers}"
        for index, connection in self._others.items():
            connection.limit(None)
            self._send(index, wrong)
        if wrong:
            raise TimeoutError(wrong)

    def _gather(self, port, deadline):
        """Wait for all processes; return a phrase about one whose index is wrong, else ""."""
        # The backend's port: if it is taken, the backend ends without naming the reason.
        _server(port - 1).close()
        with _server(port) as server:
            while len(self._others) < self.count - 1 and (left := deadline - time.monotonic()) > 0:
                server.settimeout(left)
                try:
                    connection = _Connection(server.accept()[0], min(left, _GREETING))
                    index = connection.receive()
                except (OSError, ValueError):  # time is over, or another program connected
                    continue
                if type(index) is not int:
                    continue
                if not 0 < index < self.count or index in self._others:
                    self._others[-1] = connection
                    return f"{index} came{' twice' if index in self._others else ''}"
                self._others[index] = connection
        return ""

    def _send(self, index, value):
        try:
            self._others[index].send(value)
        except (OSError, ValueError, KeyError) as error:
            raise ConnectionError(f"process {index} of {self.count} has ended") from error

    def _receive(self, index):
        try:
            return self._others[index].receive()
        except TimeoutError as error:
            raise TimeoutError(f"process {index} of {self.count} did not answer") from error
        except (OSError, ValueError, KeyError) as error:  # ValueError: nothing was read
            raise ConnectionError(f"process {index} of {self.count} has ended") from error


class _Connection:
    """A TCP connection on which both sides send JSON values, one per line."""

    def __init__(self, connection: socket.socket, seconds: float):
        self._socket = connection
        self._lines = connection.makefile("rw", encoding="utf-8")
        self.limit(seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def limit(self, seconds):
        self._socket.settimeout(seconds)

    def send(self, value):
        self._lines.write(json.dumps(value) + "\n")
        self._lines.flush()

    def receive(self):
        return json.loads(self._lines.readline())

    def close(self):
        with contextlib.suppress(OSError):
            self._lines.close()
        self._socket.close()


def _server(port):
    try:
        return socket.create_server(("", port))
    except OSError as error:
        raise OSError(
            f"process 0 cannot listen at port {port}: {error.strerror}; choose another with "
            "MASTER_PORT, or in KERAS_DISTRIBUTION_JOB_ADDRESSES"
        ) from error


def _connected(host, port, deadline, seconds):
    """Return a connection to process 0; try until the deadline."""
    while True:
        try:
            return _Connection(socket.create_connection((host, port), _GREETING), _GREETING)
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"process 0 did not answer at {host}:{port} within {seconds:g} s: {error}"
                ) from error
            time.sleep(0.1)


_joined = [Processes(Place())]


def current() -> Processes:
    """Return the processes that `join` has joined, else this one alone."""
    return _joined[-1]


def join() -> Processes:
    """Join the processes that the environment names (`place_in`), before any computation.

    A second call returns the same object. If the seeds of the processes differ
    (`keras.utils.set_random_seed`), all get one from process 0: otherwise they would make different
    initial weights.

    Raises:
        TimeoutError: If a process does not come within `KERAS_TRANSFORMER_JOIN_SECONDS` (300).
        OSError: If process 0 cannot listen at its ports.
        ValueError: If processes have different versions or backends, or a variable is wrong.
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
    team = Processes(place, _seconds())
    facts = {"backend": BACKEND}
    facts |= {f"version of {x}": version(x) for x in ("transformer-for-keras", "keras", BACKEND)}
    team.agree(facts)
    _share_seed(team)
    join_processes(place.index, place.count, place.address, place.local)
    _joined.append(team)
    return team


def _seconds():
    text = os.environ.get(TIMEOUT, str(_SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    require(0 < seconds <= 1e6, TIMEOUT, text, "seconds above 0, at most 1000000")
    return seconds


def _share_seed(team):
    """Give all processes a seed from process 0, unless their random states are already equal.

    Keras draws its seeds from Python's generator.
    """
    states = team.exchange(hashlib.sha256(repr(random.getstate()).encode()).hexdigest())
    if len(set(states)) > 1:
        keras.utils.set_random_seed(team.exchange(random.getrandbits(31))[0])


# Runs before JAX's handler, which waits for the other processes: they learn that this one ends.
@atexit.register
def leave() -> None:
    """Undo `join`: close the connections to the other processes."""
    while len(_joined) > 1:
        _joined.pop().close()
