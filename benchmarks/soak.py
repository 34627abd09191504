"""The server under a mixed load for a long time: wrong and lost answers, memory, open files.

    python -m benchmarks.soak FOLDER [--minutes 30] [--clients 8] [--replicas 2] [--save]

FOLDER is a saved translator. The clients send, by turns, texts, lists, HTML, files, `:predict`,
`/detect`, `/attention` and requests that are wrong, and leave before every tenth answer. Every
minute the models are loaded again (SIGHUP) and, with more than one replica, one of them is killed
(signal 9), sometimes while it loads. Each answer is compared with that of the server before the
load, whose translations of texts are compared with the `Translator`'s.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import threading
import time
from pathlib import Path

import httpx

from benchmarks import contest
from benchmarks.replicas import children, metric
from benchmarks.serving import Server, prepared_for

PERIOD = 60.0  # seconds between reloads, kills and measurements
PAUSE = 0.2  # seconds that a client waits after status 429
LEFT = 0.02  # seconds after which a client leaves


def requests_of(name: str, prepared: tuple) -> list[tuple[str, str, dict]]:
    """Return requests of all kinds: the kind, the path and the arguments of `httpx.post`.

    Args:
        name: Name of the model.
        prepared: See `benchmarks.serving.prepared_for`.
    """
    texts, _, (source, target) = prepared
    pair = {"source": source, "target": target}
    requests = []
    for i, lines in enumerate(texts[:60]):
        text = "\n".join(lines)
        others = [line for more in texts[i : i + 3] for line in more]
        html = f'<p class="a">{lines[0]}</p><script>1 < 2</script><b>{lines[-1]}</b>'
        file = {"file": ("a.txt", "\n\n".join(others).encode())}
        body = {"inputs": others}
        requests += [
            ("text", "/translate", dict(json=pair | {"q": text})),
            ("list", "/translate", dict(json=pair | {"q": others, "alternatives": 1})),
            ("HTML", "/translate", dict(json=pair | {"q": html, "format": "html"})),
            ("file", "/translate_file", dict(data=pair, files=file)),
            (":predict", f"/v1/models/{name}:predict", dict(json=body)),
            ("/detect", "/detect", dict(json={"q": text})),
            ("/attention", "/attention", dict(json=pair | {"q": lines[0]})),
            ("refused fields", "/translate", dict(json=pair | {"q": text, "target": "xx"})),
            ("no JSON", "/translate", dict(content=b'{"q": ')),
        ]
    return requests


class Load:
    """Clients that send requests until told to stop, and count what comes back.

    Args:
        url: Address of the server.
        requests: See `requests_of`.
        clients: Number of clients.
    """

    def __init__(self, url: str, requests: list, clients: int):
        self.counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        self._url, self._requests = url, requests
        with httpx.Client(base_url=url, timeout=120) as session:
            self._expected = [self._answer(session, *request) for request in requests]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def expected(self, kind: str) -> list:
        """Return the answers to the requests of a kind before the load."""
        return [x for (k, *_), x in zip(self._requests, self._expected, strict=True) if k == kind]

    def _run(self, number):
        choose = random.Random(number)
        session = httpx.Client(base_url=self._url, timeout=120)
        while not self._stop.is_set():
            i = choose.randrange(len(self._requests))
            kind, path, arguments = self._requests[i]
            if choose.random() < 0.1:
                self._leave(path, arguments)
                continue
            try:
                answer = self._answer(session, kind, path, arguments)
            except httpx.TransportError:
                self.counts[kind]["lost"] += 1
                continue
            if answer[0] in (429, 503):
                self.counts[kind]["refused"] += 1
                self._stop.wait(PAUSE)
            else:
                self.counts[kind]["right" if answer == self._expected[i] else "wrong"] += 1
        session.close()

    def _leave(self, path, arguments):
        """Send a request on a connection that is closed before the answer."""
        try:
            with httpx.Client(base_url=self._url, timeout=httpx.Timeout(10, read=LEFT)) as session:
                session.post(path, **arguments)
        except httpx.TransportError:
            self.counts["left"]["left"] += 1

    def _answer(self, session, kind, path, arguments):
        """Return the status and the answer, without what differs each time."""
        response = session.post(path, **arguments)
        answer = response.json()
        if kind == "/attention" and response.is_success:
            answer = answer["source_tokens"], answer["target_tokens"]
        if kind == "file" and response.is_success:
            address = httpx.URL(answer["translatedFileUrl"]).path
            answer = session.get(address).text
        return response.status_code, answer


def watched(server: Server, load: Load, minutes: float, replicas: int) -> list[list[str]]:
    """Let the load run, with reloads and kills; return rows of the server's memory and files."""
    choose, rows, start = random.Random(0), [], time.monotonic()
    places = Path(f"/proc/{server.process.pid}")
    while True:
        passed = (time.monotonic() - start) / 60
        answers = sum(sum(x.values()) for x in load.counts.values())
        files, threads = (len(list((places / name).iterdir())) for name in ("fd", "task"))
        of_replicas = [resident(x) for x in children(server.process.pid)]
        row = [f"{passed:.1f}", f"{answers:,}", f"{server.memory():,.0f}", f"{files}", f"{threads}"]
        rows.append([*row, ", ".join(f"{x:,.0f}" for x in of_replicas)])
        print(*rows[-1], sep=" | ", flush=True)
        if passed >= minutes:
            return rows
        if replicas > 1 and metric(server, "replicas") == replicas:
            os.kill(choose.choice(children(server.process.pid)), signal.SIGKILL)
            time.sleep(PERIOD / 2)
        os.kill(server.process.pid, signal.SIGHUP)
        time.sleep(PERIOD / (2 if replicas > 1 else 1))


def resident(process: int) -> float:
    """Return the resident memory of a process, in MiB; 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Run the load and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a saved translator")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--save", action="store_true", help="write the tables to results/")
    options = parser.parse_args()
    prepared = prepared_for(options.folder, None)
    server = Server(options.folder, "--replicas", options.replicas)
    try:
        name = Path(options.folder).resolve().name
        load = Load(server.url, requests_of(name, prepared), options.clients)
        for (_, answer), right in zip(load.expected("text"), prepared[1], strict=False):
            if answer["translatedText"] != right:
                raise RuntimeError(f"the server's translation differs: {answer}, {right!r}")
        with load:
            rows = watched(server, load, options.minutes, options.replicas)
        done = [metric(server, f"{x}_total") for x in ("reloads", "replica_restarts")]
    finally:
        status = server.stop()
    kinds = ("right", "wrong", "lost", "refused", "left")
    counts = [[kind, *(f"{load.counts[kind][x]:,}" for x in kinds)] for kind in sorted(load.counts)]
    header = ["minutes", "answers", "server, MiB", "open files", "threads", "replicas, MiB"]
    every = max(1, len(rows) // 12)
    parts = [
        contest.table(["", *kinds], counts),
        contest.table(header, [*rows[:-1:every], rows[-1]]),
        f"{done[0]:.0f} reloads, {done[1]:.0f} replicas killed and started again; the server ended "
        f"with status {status}. `refused`: status 429 or 503. {options.clients} clients.",
    ]
    title = f"The server under a mixed load for {options.minutes:g} minutes"
    contest.report(f"soak_{options.replicas}", title, parts, options.save)


if __name__ == "__main__":
    main()
