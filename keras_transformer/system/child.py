"""Child processes that answer lines of JSON: `Child` for the parent, `serve` for the child.

A child ends when its parent ends, even if the parent is killed. It ignores SIGINT, SIGTERM and
SIGHUP: the parent decides when it ends. The processes that a child has started end with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class ChildEndedError(ChildProcessError):
    """Raised when a child process ends without an answer."""


class Child:
    """A child process that answers each line of JSON on its stdin with one on its stdout.

    Args:
        command: Command line of a program that calls `serve` or speaks the same protocol.
        variables: Environment variables of the child, added to those of this process.
        cores: Numbers of the cores that the child may use; empty: the cores of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str] | None = None,
        cores: Sequence[int] = (),
    ):
        allowed = os.sched_getaffinity(0) if cores else set()
        try:
            if cores:  # the child inherits the cores of this thread
                os.sched_setaffinity(0, cores)
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                env={**os.environ, **(variables or {})},
                start_new_session=True,
            )
        finally:
            if cores:
                os.sched_setaffinity(0, allowed)

    def send(self, message: Any) -> None:
        """Send a request of plain values; if the child has ended, `receive` raises the error."""
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]  # a pipe
            self._process.stdin.flush()  # type: ignore[union-attr]  # a pipe

    def receive(self) -> Any:
        """Wait for the answer to the oldest unanswered request, and return it.

        Raises:
            ChildEndedError: If the child has ended.
        """
        line = ""
        with contextlib.suppress(OSError, ValueError):  # `stop` closed the pipe
            line = self._process.stdout.readline()  # type: ignore[union-attr]  # a pipe
        if not line.endswith("\n"):
            status = self._process.wait()
            cause = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise ChildEndedError(f"process {self._process.pid} ended {cause}")
        return json.loads(line)

    def is_alive(self) -> bool:
        """Return whether the child runs."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait until the child ends."""
        self._process.wait()

    def stop(self) -> None:
        """Kill the child and the processes that it started."""
        if hasattr(os, "killpg") and self.is_alive():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError, ValueError):  # it held an unread request
                pipe.close()  # type: ignore[union-attr]  # a pipe


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer the requests of the parent process, until it ends.

    Args:
        answer: Function from a request to its answer, both plain values.
    """
    # Only answers go to stdout; what libraries print goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read():  # in a thread, so that this process ends with its parent even while it computes
        for line in sys.stdin:
            requests.put(line)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)  # this process and those that it started
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        result = answer(json.loads(requests.get()))
        answers.write(json.dumps(result) + "\n")
        answers.flush()
