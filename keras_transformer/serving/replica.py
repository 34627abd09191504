"""A replica: a process that holds the models and computes for the server. Both ends of its pipes.

Requests come through its stdin, answers go through its stdout: one line of JSON each.
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
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

COMMAND = (
    sys.executable,
    "-c",
    "from keras_transformer.serving.replica import load, serve; serve(load)",
)
Models = list[dict[str, Any]]  # of each model, what `catalogue.Model.facts` returns
_ERRORS = {kind.__name__: kind for kind in (ValueError, ImportError, OSError)}  # of bad input


class ReplicaEndedError(ChildProcessError):
    """The process of a replica ended, and gave no answer."""


class Replica:
    """A process with the models.

    Args:
        task: Arguments of `load`.
        cores: Cores that the process may use; empty: all.
        variables: Variables of its environment, besides those of this process.
        command: The command that runs `serve`.
    """

    def __init__(
        self,
        task: dict[str, Any],
        cores: Sequence[int] = (),
        variables: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ):
        self.busy = False
        self.models: Models = []
        self._process = _start(command, cores, variables or {})
        self._send(task)

    def load(self) -> None:
        """Wait until the models are loaded; then `models` has the facts of each.

        Raises:
            ReplicaEndedError: If the process ended.
            ValueError, ImportError, OSError: If they cannot be loaded.
        """
        self.models = self._receive()

    def ask(self, *arguments: Any) -> Any:
        """Let the process compute, and return its answer.

        Raises:
            ReplicaEndedError: If the process ended.
            ValueError: If the arguments are refused.
            RuntimeError: If the computation failed; the message has the process's traceback.
        """
        self._send(arguments)
        return self._receive()

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Wait until the process ends."""
        self._process.wait()

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a request that was never read
                pipe.close()

    def _send(self, message):
        with contextlib.suppress(OSError, ValueError):  # it ended: `_receive` says so
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _receive(self):
        line = ""
        with contextlib.suppress(OSError, ValueError):  # `stop` closed the pipe
            line = self._process.stdout.readline()
        if not line.endswith("\n"):
            status = self._process.wait()
            cause = f"by signal {-status}" if status < 0 else f"with status {status}"
            raise ReplicaEndedError(f"replica {self._process.pid} ended {cause}")
        answer = json.loads(line)
        if "found" in answer:
            return answer["found"]
        raise _ERRORS.get(answer["error"], RuntimeError)(answer["message"])


def _start(command, cores, variables):
    """Start a process on these cores only: it inherits them from the thread that starts it."""
    allowed = os.sched_getaffinity(0) if cores else None
    try:
        if cores:
            os.sched_setaffinity(0, cores)
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, **variables},
            start_new_session=True,  # Ctrl-C reaches the server only
        )
    finally:
        if cores:
            os.sched_setaffinity(0, allowed)


def serve(load: Callable[..., tuple[Models, Callable[..., Any]]]) -> None:
    """Answer the requests of the server until it ends.

    Args:
        load: Function called with the fields of the first request. It loads the models and returns
            their facts, which are the answer, and the function that computes the answers to all
            further requests, which are lists of its arguments.
    """
    warnings.showwarning = _without_text
    # Only answers go to stdout; what libraries print goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # These signals reach all processes of a terminal or of a service; the server handles them.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    requests: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    compute = None
    while True:
        message = json.loads(requests.get())
        try:
            if compute is None:
                found, compute = load(**message)
            else:
                found = compute(*message)
            answer = {"found": found}
        except Exception as error:
            name = next((x for x, kind in _ERRORS.items() if isinstance(error, kind)), None)
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            message = f"{error}{notes}" if name else traceback.format_exc()
            answer = {"error": name, "message": message}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _without_text(message, *_, **__):
    """Print a warning as the server's log does: without what it quotes, which may be a text."""
    print(f"WARNING: {str(message).partition(', got ')[0]}", file=sys.stderr, flush=True)


def _read(requests):
    """Read requests beside the computation, so that the replica ends when the server does."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def load(
    specifications: Sequence[str], device: str | None, options: dict[str, Any]
) -> tuple[Models, Callable[..., Any]]:
    """Load the models of a server; see `serve` for what is returned.

    Args:
        specifications: The models, as for `Catalogue.load`.
        device: The only GPU that this process was started to see; None: no GPU is needed.
        options: Options of `Catalogue.load`.

    Raises:
        ValueError: If the GPU is not there, or for the reasons of `Catalogue.load`.
    """
    from keras_transformer.backend import BACKEND, count_gpus, keep_compilations
    from keras_transformer.serving.catalogue import Catalogue

    if device is not None and not count_gpus():
        raise ValueError(f"devices must be GPUs that {BACKEND} sees, got {device!r}")
    keep_compilations()
    catalogue = Catalogue.load(specifications, **options)

    models = {
        (name, number): model
        for name, versions in catalogue.models.items()
        for number, model in versions.by_number.items()
    }

    def compute(name, number, pair, method, *arguments):
        # While models are being replaced, a version may be in other replicas only.
        others = (x for (own, _), x in reversed(models.items()) if own == name)
        model, pair = models.get((name, number)) or next(others, None), tuple(pair)
        if model is None or pair not in model.pairs:
            raise ValueError(f"{name} from {pair[0]} to {pair[1]} was replaced by other models")
        return getattr(model.engine(pair), method)(*arguments)

    return [model.facts() for model in models.values()], compute
