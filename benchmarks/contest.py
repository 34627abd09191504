"""Run contestants in turn, A B A B ..., each in a separate process that waits for its turn.

The speed of a shared machine may change tenfold within a minute. Contestants that run in turn meet
the same conditions, so their ratio is meaningful. A contestant is a function `setup(**options)`
that prepares the work and returns `run, facts`; each call of `run` does one measured piece of it.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine


@dataclasses.dataclass
class Contestant:
    """A process that runs one piece of work on each request.

    Args:
        name: Name in the table.
        setup: Setup function, as "package.module:function".
        options: Arguments of the setup function, JSON values.
        environment: Environment variables to set in the process, such as KERAS_BACKEND.
    """

    name: str
    setup: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    environment: dict[str, str] = dataclasses.field(default_factory=dict)

    def start(self) -> None:
        """Start the process, wait until it is ready and set `facts`."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the process."""
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._begin = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.contest", self.setup, json.dumps(self.options)],
            env={**os.environ, **self.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def wait(self) -> None:
        """Wait until the process is ready and set `facts`."""
        self.facts = self._answer()
        self.results: list[dict[str, Any]] = []
        _say(f"{self.name}: ready after {time.perf_counter() - self._begin:.0f} s")

    def run(self) -> dict[str, Any]:
        """Run one piece of work; return its results, times and memory.

        `seconds`, processor time as `user_seconds` and `kernel_seconds`, `page_faults`, and
        `peak_bytes` so far.
        """
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        self.results.append(self._answer())
        return self.results[-1]

    def stop(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            raise RuntimeError(f"{self.name} failed:\n{self.log.read()[-4000:]}")
        return json.loads(line)

    @property
    def seconds(self) -> float:
        """Median seconds of the runs."""
        return statistics.median(result["seconds"] for result in self.results)


def contest(contestants: Sequence[Contestant], rounds: int, check: Callable[[], None]) -> None:
    """Run all contestants in turn, after a warmup round that does not count.

    They are set up one after another, or all at once if the machine has three cores for each.

    Args:
        contestants: Contestants to start, run and stop.
        rounds: Rounds that count, at least 1.
        check: Function called when all are ready, before any is timed. It raises an error if the
            contestants cannot be compared.
    """
    started = []
    try:
        if machine.count_cores() >= 3 * len(contestants):
            for contestant in contestants:
                started.append(contestant)
                contestant.launch()
            for contestant in contestants:
                contestant.wait()
        for contestant in contestants[len(started) :]:
            started.append(contestant)
            contestant.start()
        check()
        for number in range(rounds + 1):
            for contestant in contestants:
                contestant.run()
                if number == 0:
                    contestant.results.clear()
            times = ", ".join(
                f"{c.name} {c.results[-1]['seconds']:.3f}" for c in contestants if c.results
            )
            _say(f"round {number} of {rounds}: {times}")
    finally:
        for contestant in started:
            contestant.stop()


def alone(contestant: Contestant, runs: int = 1) -> None:
    """Run one contestant while no other one is loaded, to measure memory."""
    contestant.start()
    try:
        for _ in range(runs):
            contestant.run()
    finally:
        contestant.stop()


def ratio(peer: Contestant, ours: Contestant) -> float:
    """Return our speed divided by the peer's: the median of the ratios of all rounds.

    The speed is tokens per second where the results have `tokens`, otherwise runs per second.
    """
    rates = [
        [result.get("tokens", 1) / result["seconds"] for result in entry.results]
        for entry in (peer, ours)
    ]
    return statistics.median(b / a for a, b in zip(*rates, strict=True))


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak where the system has no figure."""
    return _status("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    # VmHWM is preferred because a child process inherits ru_maxrss from its parent.
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _status(field):
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(x.split()[1]) * 1024 for x in lines if x.startswith(f"{field}:")), None)


def matmul_peak(precision: str = "float32", size: int = 2048) -> tuple[Callable, dict]:
    """A contestant: PyTorch's matmul of square matrices, as the machine's peak."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = getattr(torch, precision)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    repeats = 200 if device == "cuda" else 5 if precision == "float32" else 20

    def run():
        begin = time.perf_counter()
        for _ in range(repeats):
            a @ b
        if device == "cuda":
            torch.cuda.synchronize()
        return {"flops": 2 * size**3 * repeats / (time.perf_counter() - begin)}

    run()
    return run, {}


def spread(numbers: Sequence[float], digits: int = 1) -> str:
    """Return the mean, with the least and the greatest if there are several numbers."""
    values = statistics.mean(numbers), min(numbers), max(numbers)
    mean, *ends = (f"{x:.{digits}f}" for x in values)
    return f"{mean} ({' to '.join(ends)})" if len(numbers) > 1 else mean


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def report(name: str, title: str, parts: Sequence[str], save: bool) -> None:
    """Print a result with its command and machine; with `save`, also write it to `results/`."""
    module = sys.modules["__main__"].__spec__.name
    # Absolute paths mean nothing on other machines: keep the last part.
    arguments = [Path(x).name if Path(x).is_absolute() else x for x in sys.argv[1:]]
    command = " ".join(["python -m", module, *arguments])
    about = machine.versions(
        "keras", "torch", "jax", "tensorflow", "keras-hub", "transformers", "ctranslate2",
        "pymarian",
    )  # fmt: skip
    text = "\n\n".join(
        [
            f"# {title}",
            f"`{command}`, {time.strftime('%Y-%m-%d')}\n\n{machine.description()}; {about}.",
            *parts,
        ]
    )
    print(text)
    if save:
        (machine.results_folder() / f"{name}.md").write_text(text + "\n", "utf-8")


def _serve(target: str, options: dict[str, Any]) -> None:
    # stdout carries the answers only: everything that libraries print goes to stderr.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, function = target.split(":")
    run, facts = getattr(importlib.import_module(module), function)(**options)
    print(json.dumps(facts), file=answers, flush=True)
    for _ in sys.stdin:
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        result = run() or {}
        seconds = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_SELF)
        measured = {
            "seconds": seconds,
            "peak_bytes": peak_bytes(),
            "user_seconds": after.ru_utime - before.ru_utime,
            "kernel_seconds": after.ru_stime - before.ru_stime,
            "page_faults": after.ru_minflt - before.ru_minflt,
        }
        print(json.dumps({**measured, **result}), file=answers, flush=True)


def _say(line):
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], json.loads(sys.argv[2]))
