"""A page that translates in the browser: its size, its start, its speed and its translations.

    python -m benchmarks.web_page PAGE TRANSLATOR [--sentences 200] [--save]

PAGE is a folder that `keras-transformer export TRANSLATOR PAGE --format web` wrote. Chromium opens
it from a host on this machine, with an empty cache. "ready" is the time from the navigation until
a text can be translated; "first translation" includes the pause of 300 ms after which the page
takes a text. Then the page's worker translates English sentences into German one by one, evenly
chosen from the development set of Tatoeba (KT_DATA). "equal" counts the translations that are those
of TRANSLATOR in float32, without protected spans, which the page does not have.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import http.server
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks import contest
from keras_transformer.translate.translator import Translator

PAIR = "en", "de"
TEXT = "My brother has been learning to play the guitar since last summer."
LARGEST_WAIT = 60_000  # milliseconds
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
# Loads the translator in a worker of its own; returns each translation with its milliseconds.
TRANSLATE = """async ([texts, source, target]) => {
    const { Client } = await import("./client.js");
    const client = new Client();
    await client.ask("load");
    const results = [];
    for (const text of texts) {
        const start = performance.now();
        const [{ text: best }] = await client.ask("translate", { text, source, target });
        results.push([best, performance.now() - start]);
    }
    return results;
}"""


class Host(http.server.SimpleHTTPRequestHandler):
    """A host of static files that logs nothing."""

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


def start(page: Page, url: str) -> tuple[float, float]:
    """Open the page and translate a text; return the milliseconds of both."""
    begin = time.perf_counter()
    page.goto(url)
    expect(page.locator("#source")).to_be_enabled(timeout=LARGEST_WAIT)
    ready = time.perf_counter()
    page.locator("#text").fill(TEXT)
    expect(page.locator("#copy")).to_be_enabled(timeout=LARGEST_WAIT)
    return 1000 * (ready - begin), 1000 * (time.perf_counter() - ready)


def sentences(count: int) -> list[str]:
    """Return sentences of the development set, evenly chosen."""
    path = Path(os.environ["KT_DATA"], "tatoeba-en-de", "dev.en.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return [lines[i * len(lines) // count] for i in range(count)]


def measured(folder: Path, texts: list[str]) -> tuple[list[float], list[tuple[str, float]]]:
    """Return the milliseconds of the start, and each translation with its milliseconds."""
    handler = functools.partial(Host, directory=folder)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        sync_playwright() as playwright,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or shutil.which("chromium-browser"),
            args=ARGUMENTS,
        )
        page = browser.new_page()
        times = start(page, f"http://127.0.0.1:{server.server_port}/")
        results = page.evaluate(TRANSLATE, [texts, *PAIR])
        browser.close()
        server.shutdown()
    return [*times], [(text, float(milliseconds)) for text, milliseconds in results]


def main() -> None:
    """Measure the page and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path, help="the exported page")
    parser.add_argument("translator", help="the translator that it was exported from")
    parser.add_argument("--sentences", type=int, default=200, help="number of sentences")
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    texts = sentences(options.sentences)
    (ready, first), results = measured(options.page, texts)
    translator = Translator.load(options.translator, "float32", *PAIR)
    expected = translator.translate(texts, protect=False)
    equal = sum(x == text for x, (text, _) in zip(expected, results, strict=True))
    sizes = [path.stat().st_size for path in options.page.rglob("*") if path.is_file()]
    milliseconds = sorted(x for _, x in results)
    header = [
        "MB in all",
        "ready ms",
        "first translation ms",
        "ms a sentence",
        "median ms",
        "equal",
    ]
    row = [
        f"{sum(sizes) / 1e6:.1f}",
        *(f"{x:,.0f}" for x in (ready, first)),
        f"{sum(milliseconds) / len(texts):.0f}",
        f"{milliseconds[len(texts) // 2]:.0f}",
        f"{equal} of {len(texts)}",
    ]
    contest.report("web", "A page that translates", [contest.table(header, [row])], options.save)


if __name__ == "__main__":
    main()
