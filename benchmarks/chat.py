"""Chats with the server: many at once against one after another, and the time to the first token.

    python -m benchmarks.chat FOLDER [--texts FILE] [--chats 32] [--tokens 100] [--rounds 3]
        [--slots 32] [--save]

FOLDER is a saved language model, such as one of Shakespeare; its server runs in a process of its
own. A prompt is a line of FILE (by default "ROMEO:" and a number). Each reply has `--tokens` tokens
at temperature 0.8 and a seed of its own, is streamed, and is compared with `CausalLM.stream`'s. In
each round, all prompts are sent one after another, then all at once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import contest
from benchmarks.serving import Server

TEMPERATURE = 0.8


def prompts_of(path: Path | None, count: int) -> list[str]:
    """Return `count` prompts: lines of a file, or numbered ones."""
    if path is None:
        return [f"ROMEO:\n{number}" for number in range(count)]
    lines = [x for x in path.read_text(encoding="utf-8").splitlines() if x.strip()]
    return [lines[i % len(lines)] for i in range(count)]


def reply(url: str, model: str, prompt: str, seed: int, tokens: int) -> tuple[str, float]:
    """Return the text of a streamed reply, and the seconds to its first piece."""
    body = dict(model=model, prompt=prompt, seed=seed, max_tokens=tokens, stream=True)
    data = json.dumps({**body, "temperature": TEMPERATURE}).encode()
    text, first, start = "", None, time.perf_counter()
    # Unlike httpx, the standard library's client leaves most of the processor to the server.
    with urllib.request.urlopen(f"{url}/v1/completions", data, timeout=600) as answer:
        for line in answer:
            if line.startswith(b"data: {"):
                first = first or time.perf_counter() - start
                text += json.loads(line[6:])["choices"][0]["text"]
    return text, first or time.perf_counter() - start


def measured(
    url: str, model: str, prompts: list[str], tokens: int, at_once: int
) -> tuple[list[str], list[float], float]:
    """Return the replies, the seconds to the first token of each, and the seconds of all."""
    start = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        numbers = range(len(prompts))
        replies = list(pool.map(lambda i: reply(url, model, prompts[i], i, tokens), numbers))
    texts, firsts = zip(*replies, strict=True)
    return list(texts), list(firsts), time.perf_counter() - start


def tables(folder: str, prompts: list[str], tokens: int, rounds: int, slots: int) -> str:
    """Return the table of chats one after another, and all at once."""
    from keras_transformer.language.causal_lm import CausalLM

    writer, model = CausalLM.load(folder), Path(folder).resolve().name
    options = dict(max_new_tokens=tokens, temperature=TEMPERATURE)
    expected = ["".join(writer.stream(x, seed=i, **options)) for i, x in enumerate(prompts)]
    total = sum(len(ids) for ids in writer.tokenizer.encode(expected))
    ways = {"one after another": 1, "at once": len(prompts)}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    firsts: dict[str, list[float]] = {name: [] for name in ways}
    wrong = dict.fromkeys(ways, 0)
    server = Server(folder, "--slots", slots, "--timeout", 600)
    try:
        for count in ways.values():  # warm-up
            measured(server.url, model, prompts, min(tokens, 8), count)
        for _ in range(rounds):
            for name, count in ways.items():
                texts, first, seconds = measured(server.url, model, prompts, tokens, count)
                rates[name].append(total / seconds)
                firsts[name] += first
                wrong[name] += sum(x != y for x, y in zip(texts, expected, strict=True))
    finally:
        server.stop()
    rows = [
        [
            name,
            f"{statistics.median(rates[name]):,.0f}",
            *(f"{1000 * x:,.0f}" for x in np.percentile(firsts[name], [50, 95])),
            wrong[name],
        ]
        for name in ways
    ]
    header = ["chats", "tokens/s (median)", "first token p50 ms", "p95 ms", "wrong replies"]
    alone, together = rates.values()
    ratio = statistics.median([y / x for x, y in zip(alone, together, strict=True)])
    told = f"At once beside one after another: {ratio:.1f} times, the median of the rounds."
    return f"{contest.table(header, rows)}\n\n{told}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="a saved language model")
    parser.add_argument("--texts", type=Path, help="file of prompts, a line each")
    parser.add_argument("--chats", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=100, help="most tokens of a reply")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    prompts = prompts_of(options.texts, options.chats)
    busy = os.getloadavg()[0]
    results = tables(options.folder, prompts, options.tokens, options.rounds, options.slots)
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    parts = [
        f"## {options.chats} chats of at most {options.tokens} tokens, {options.slots} slots, "
        f"{backend}\n\n{results}",
        f"The load average of the machine was {busy:.0f} at the start and "
        f"{os.getloadavg()[0]:.0f} at the end. The clients run on the same cores.",
    ]
    contest.report("chat", "Chats of the server", parts, options.save)


if __name__ == "__main__":
    main()
