"""Replicas of the server: speed against one process, and what is lost when they are killed.

    python -m benchmarks.replicas FOLDER [--texts FILE] [--clients 32] [--seconds 20] [--rounds 5]
        [--kills 10] [--save]

FOLDER is a saved translator; requests and clients are those of `benchmarks.serving`. First, a
server with two replicas answers the clients while a replica is killed (signal 9), again and again,
each time after all replicas are alive. Every answer is compared with the `Translator`'s. Then a
server of one process and one with two replicas are measured in turn, `--rounds` times; the other
one waits idle.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from benchmarks import contest
from benchmarks.serving import Server, asked, prepared_for

REPLICAS = 2


def children(process: int) -> list[int]:
    """Return the ids of the processes that a process started and that run."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def metric(server: Server, name: str) -> float:
    """Return the value of one of the server's metrics."""
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (x for x in lines if x.startswith(f"keras_transformer_{name} "))
    return float(line.split()[1])


def killing(server: Server, stop: threading.Event) -> None:
    """Kill a random replica 0.5 to 2 seconds after all are alive, until told to stop."""
    generator = random.Random(0)
    while not stop.is_set():
        if metric(server, "replicas") == REPLICAS:
            stop.wait(generator.uniform(0.5, 2))
            if not stop.is_set():
                os.kill(generator.choice(children(server.process.pid)), signal.SIGKILL)
        stop.wait(0.2)


def under_kills(folder: str, prepared: tuple, clients: int, seconds: float, kills: int) -> str:
    """Return a table of the answers of a server whose replicas are killed.

    Args:
        folder, prepared, clients: See `benchmarks.serving`.
        seconds: Duration of a run; it is repeated until there were enough kills.
        kills: Minimum number of kills.
    """
    server, stop = Server(folder, "--replicas", REPLICAS, "--timeout", 600), threading.Event()
    thread = threading.Thread(target=killing, args=(server, stop))
    statuses: dict[str, int] = {}
    seconds_taken: list[float] = []
    wrong = 0
    try:
        asked(server, prepared, clients, 5)
        thread.start()
        while (restarts := metric(server, "replica_restarts_total")) < kills:
            results = asked(server, prepared, clients, seconds)
            wrong += results["wrong"]
            seconds_taken += results["seconds"]
            for status, number in results["statuses"].items():
                statuses[status] = statuses.get(status, 0) + number
    finally:
        stop.set()
        thread.join()
        server.stop()
    answered = statuses.pop("200", 0)
    lost = statuses.pop("lost", 0)
    times = [f"{1000 * x:,.0f}" for x in np.percentile(seconds_taken, [50, 99])]
    header = ["replicas killed", "answered", "lost", "other statuses", "wrong", "p50 ms", "p99 ms"]
    others = sum(statuses.values())
    row = [f"{restarts:.0f}", f"{answered:,}", f"{lost:,}", f"{others:,}", f"{wrong:,}", *times]
    return contest.table(header, [row])


def in_turn(folder: str, prepared: tuple, clients: int, seconds: float, rounds: int) -> str:
    """Return a table of sentences per second of one process and of two replicas."""
    servers = {"one process": Server(folder), "2 replicas": Server(folder, "--replicas", REPLICAS)}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    wrong = dict.fromkeys(servers, 0)
    try:
        for server in servers.values():  # warm-up
            asked(server, prepared, clients, seconds)
        for _ in range(rounds):
            for name, server in servers.items():
                results = asked(server, prepared, clients, seconds)
                rates[name].append(results["sentences"] / results["took"])
                wrong[name] += results["wrong"]
                time.sleep(0.5)
    finally:
        for server in servers.values():
            server.stop()
    rows = [
        [
            name,
            f"{statistics.median(speeds):.1f}",
            ", ".join(f"{x:.1f}" for x in speeds),
            wrong[name],
        ]
        for name, speeds in rates.items()
    ]
    header = ["", "sentences/s (median)", "of each round", "wrong"]
    first, second = rates.values()
    ratio = statistics.median([y / x for x, y in zip(first, second, strict=True)])
    told = f"Two replicas beside one process: {ratio:.2f} times, the median of the rounds."
    return f"{contest.table(header, rows)}\n\n{told}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a saved translator")
    parser.add_argument(
        "--texts", type=Path, help="file of lines to translate (default: the grammar corpus)"
    )
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20, help="duration of a run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server")
    parser.add_argument("--kills", type=int, default=10, help="replicas to kill, at least")
    parser.add_argument("--save", action="store_true", help="write the tables to results/")
    options = parser.parse_args()
    prepared = prepared_for(options.folder, options.texts)
    busy = os.getloadavg()[0]
    killed = under_kills(options.folder, prepared, options.clients, options.seconds, options.kills)
    speed = in_turn(options.folder, prepared, options.clients, options.seconds, options.rounds)
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    threads = os.environ.get("OMP_NUM_THREADS", "not set")
    parts = [
        f"## {options.clients} clients while replicas are killed, {backend}\n\n{killed}",
        f"## Sentences per second, runs of {options.seconds:g} seconds in turn\n\n{speed}",
        f"The machine is shared with other programs: its load average was {busy:.0f} at the start "
        f"and {os.getloadavg()[0]:.0f} at the end. The clients run on the same cores. "
        f"OMP_NUM_THREADS, the threads of each process, was {threads}.",
    ]
    contest.report("replicas", "Replicas of the server", parts, options.save)


if __name__ == "__main__":
    main()
