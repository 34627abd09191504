"""The local executor: worker processes of this machine, each with its share of cores and GPUs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from typing import Any

from keras_transformer.config import require
from keras_transformer.corpora.job_options import JobOptions
from keras_transformer.corpora.shards import Shard
from keras_transformer.system.child import Child, ChildEndedError

STARTS = 3  # failed starts of a worker in a row that end the job
_WORKER = [sys.executable, "-m", "keras_transformer.corpora.worker"]


def on_processes(
    job: dict[str, Any], shards: Sequence[Shard], options: JobOptions
) -> Generator[dict[str, Any]]:
    """Process shards on this machine; yield each answer of `worker.Worker` as it arrives.

    A process that dies is replaced, and its shard is sent to the new process.

    Args:
        job: Values of a `job.Job`.
        shards: Shards to process.
        options: Options of the executor.

    Raises:
        ValueError: If the machine has fewer GPUs than asked for.
        RuntimeError: If a worker's process dies `STARTS` times in a row before it is ready.
    """
    processes = min(options.processes, len(shards))
    gpus = shares_of_gpus(processes, int(options.gpus))
    todo: queue.SimpleQueue = queue.SimpleQueue()
    results: queue.SimpleQueue = queue.SimpleQueue()
    for shard in shards:
        todo.put(shard)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    workers = [
        _Process(job, cores[number::processes] or cores, gpus[number])
        for number in range(processes)
    ]
    for worker in workers:
        threading.Thread(target=worker.serve, args=(todo, results), daemon=True).start()
    try:
        for _ in shards:
            answer = results.get()
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        for worker in workers:
            worker.stop()


def shares_of_gpus(processes: int, gpus: int) -> list[str | None]:
    """Return the value of CUDA_VISIBLE_DEVICES for each process; None: leave it unchanged.

    Args:
        processes: Number of processes.
        gpus: Number of GPUs of each process; 0: none is assigned.

    Raises:
        ValueError: If this machine has too few GPUs.
    """
    if not gpus:
        return [None] * processes
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        here = [device for device in visible.split(",") if device.strip() not in ("", "-1")]
    else:
        listed = ""
        with contextlib.suppress(OSError):
            listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
        here = [str(i) for i, line in enumerate(listed.splitlines()) if line.startswith("GPU ")]
    accepted = f"at most {len(here) // processes} for {processes} processes"
    require(
        gpus * processes <= len(here), "gpus", gpus, f"{accepted}: this machine has {len(here)}"
    )
    return [",".join(here[i * gpus : (i + 1) * gpus]) for i in range(processes)]


class _Process:
    """A worker process, which is replaced by a new one if it dies."""

    def __init__(self, job, cores, gpus):
        self.job, self.cores = job, cores
        self._variables = {} if gpus is None else {"CUDA_VISIBLE_DEVICES": gpus}
        self._lock = threading.Lock()
        self._stopped = False
        self._starts = 0  # failed starts in a row
        self._child: Child | None = None

    def serve(self, todo, results):
        """Process shards until `todo` is empty; put the answers into `results`. Run in a thread."""
        try:
            while not self._stopped:
                try:
                    shard = todo.get_nowait()
                except queue.Empty:
                    return
                results.put(self._answer(shard))
        except Exception as error:
            results.put(error)

    def stop(self):
        """End the process, whatever it is doing."""
        with self._lock:
            self._stopped = True
            self._end()

    def _answer(self, shard):
        """Return the answer for a shard, replacing the process if it dies; None after `stop`."""
        while not self._stopped:
            child = self._child  # `stop` may set it to None at any time
            if child is None:
                self._start()
                continue
            with contextlib.suppress(ChildEndedError):
                return _asked(child, dataclasses.asdict(shard))
            with self._lock:
                self._end()
        return None

    def _start(self):
        """Start the process and send it the job; raise RuntimeError after `STARTS` failures."""
        with self._lock:
            if self._stopped:
                return
            child = self._child = Child(_WORKER, self._variables, self.cores)
        try:
            _asked(child, self.job)
            self._starts = 0
        except ChildEndedError as error:
            with self._lock:
                if self._stopped:
                    return
                self._end()
            self._starts += 1
            if self._starts == STARTS:
                raise RuntimeError(
                    f"{STARTS} worker processes in a row ended before they were ready: {error}"
                ) from error

    def _end(self):
        if self._child is not None:
            self._child.stop()
            self._child = None


def _asked(child, message):
    child.send(message)
    return child.receive()
