"""The server under load: batching or not, a short queue, and the engine of CTranslate2.

    python -m benchmarks.serving FOLDER [--texts FILE] [--clients 64] [--seconds 60] [--save]

FOLDER is a saved translator. The clients run in a separate process, over loopback; each sends its
next request when the previous one is answered. A request is one line of FILE (by default of the
grammar corpus's test set); every fourth has two or three. Every answer is compared with the
`Translator`'s translation of each sentence alone. The short queue holds 200 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

from benchmarks import contest
from keras_transformer.system.ports import free_port

PAUSE = 0.2  # seconds that a client waits after status 429


def texts_of(path: Path | None) -> list[list[str]]:
    """Return the requests: lists of one to three sentences."""
    if path:
        lines = [x for x in path.read_text(encoding="utf-8").splitlines() if x.strip()]
    else:
        from keras_transformer.data.built_in_corpora import load_corpus

        lines = [source for source, _ in load_corpus("grammar", None, train_size=1).tests["test"]]
    generator = random.Random(0)
    lines = lines[:400]
    return [
        generator.sample(lines, generator.choice((2, 3)) if i % 4 == 0 else 1)
        for i in range(len(lines))
    ]


class Server:
    """A server in a separate process, started and ready.

    Args:
        folder: Folder of a saved translator.
        options: More command line options of `keras-transformer serve`.
    """

    def __init__(self, folder: str, *options: object):
        self.port = free_port()
        command = [sys.executable, "-m", "keras_transformer.cli", "serve", str(folder)]
        command += ["--port", str(self.port), *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with status {self.process.returncode}")
            try:
                with urllib.request.urlopen(f"{self.url}/health"):
                    return
            except OSError:
                time.sleep(0.2)

    def memory(self) -> float:
        """Return the resident memory of the server, in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> int:
        """Stop the server and return its exit status."""
        self.process.terminate()
        return self.process.wait(60)


async def load(
    url: str, texts: list, expected: list, languages: list, clients: int, seconds: float
) -> dict:
    """Run clients for some seconds; return latencies, statuses and the number of wrong answers."""
    results = {"seconds": [], "statuses": Counter(), "wrong": 0, "sentences": 0}
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=clients)

    async def client(number, session):
        generator = random.Random(number)
        while time.monotonic() < end:
            i = generator.randrange(len(texts))
            body = {"q": "\n".join(texts[i]), "source": languages[0], "target": languages[1]}
            start = time.perf_counter()
            try:
                response = await session.post("/translate", json=body)
            except httpx.TransportError:
                results["statuses"]["lost"] += 1
                continue
            results["statuses"][response.status_code] += 1
            if response.status_code == 200:
                results["seconds"].append(time.perf_counter() - start)
                results["sentences"] += len(texts[i])
                results["wrong"] += response.json()["translatedText"] != expected[i]
            elif response.status_code == 429:
                await asyncio.sleep(PAUSE)

    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as session:
        await asyncio.gather(*(client(number, session) for number in range(clients)))
    results["took"] = time.monotonic() - end + seconds
    return results


def asked(server: Server, prepared: tuple, clients: int, seconds: float) -> dict:
    """Run `load` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.serving", "--client", str(seconds)]
    task = json.dumps([server.url, *prepared, clients])
    output = subprocess.run(command, input=task, text=True, stdout=subprocess.PIPE, check=True)
    return json.loads(output.stdout)


def prepared_for(folder: str, path: Path | None) -> tuple[list, list, list]:
    """Return requests, the right answer to each, and the languages.

    Args:
        folder: Folder of a saved translator, which translates each sentence alone.
        path: File of lines to translate, see `texts_of`.
    """
    from keras_transformer.serving.sentences import Sentences
    from keras_transformer.translate.translator import Translator

    texts = texts_of(path)
    translator = Translator.load(folder)
    languages = [translator.source_language, translator.target_language]
    split = [Sentences.of("\n".join(text), languages[0]) for text in texts]
    alone = {x: translator.translate([x])[0] for split_text in split for x in split_text.texts}
    return (
        texts,
        [split_text.joined([alone[x] for x in split_text.texts]) for split_text in split],
        languages,
    )


def measured(
    name: str, folder: str, options: tuple, prepared: tuple, clients: int, seconds: float
) -> tuple[list[str], dict]:
    """Start a server, load it and return a row of the table and the raw counts."""
    server = Server(folder, *options)
    try:
        # The first, short run is a warmup: it compiles the shapes and loads the libraries.
        for length in (min(5, seconds), seconds):
            before = server.memory()
            results = asked(server, prepared, clients, length)
        after = server.memory()
    finally:
        status = server.stop()
    if status not in (0, -signal.SIGTERM):
        raise RuntimeError(f"the server ended with status {status}")
    times = 1000 * np.percentile(results["seconds"], [50, 95, 99])
    row = [
        name,
        f"{sum(results['statuses'].values()):,}",
        f"{results['statuses'].get('200', 0):,}",
        f"{results['statuses'].get('429', 0):,}",
        f"{results['statuses'].get('lost', 0):,}",
        f"{results['wrong']:,}",
        f"{results['sentences'] / results['took']:.1f}",
        *(f"{x:,.0f}" for x in times),
        f"{before:,.0f}",
        f"{after:,.0f}",
    ]
    return row, results


def main() -> None:
    """Run the servers one after another and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="a saved translator")
    parser.add_argument(
        "--texts", type=Path, help="file of lines to translate (default: the grammar corpus)"
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--client", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        url, texts, expected, languages, clients = json.load(sys.stdin)
        results = asyncio.run(load(url, texts, expected, languages, clients, options.client))
        print(json.dumps(results))
        return
    if options.folder is None:
        parser.error("give the folder of a saved translator")
    prepared = prepared_for(options.folder, options.texts)
    rates, rows = [], []
    runs = {
        "batching": (),
        "no batching": ("--tokens-per-batch", 1, "--delay", 0),
        "queue of 200 tokens": ("--most-waiting", 200),
    }
    if importlib.util.find_spec("ctranslate2"):
        runs["batching, engine ctranslate2"] = ("--engine", "ctranslate2")
    for name, flags in runs.items():
        row, results = measured(
            name, options.folder, flags, prepared, options.clients, options.seconds
        )
        rows.append(row)
        rates.append(results["sentences"] / results["took"])
    header = "|requests|answered|429|lost|wrong|sentences/s|p50 ms|p95 ms|p99 ms|MiB before|after"
    about = f"{options.clients} clients for {options.seconds:g} seconds"
    ratio = f"Batching: {rates[0] / rates[1]:.2f} times as many sentences per second."
    if len(rates) > 3:
        ratio += f" The engine ctranslate2: {rates[3] / rates[0]:.2f} times those of batching."
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    parts = [f"## {about}, {backend}", contest.table(header.split("|"), rows), ratio]
    contest.report(f"serving-{backend}", "The server under load", parts, options.save)


if __name__ == "__main__":
    main()
