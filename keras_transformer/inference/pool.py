"""A translator in several processes, each with its share of the cores."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import traceback
import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keras_transformer.backend import keep_compilations
from keras_transformer.config import require, require_whole
from keras_transformer.inference.pipeline import Hypothesis
from keras_transformer.inference.translator import Translator
from keras_transformer.text.tokenizer import checked_texts

_PIECES = 4  # per process, so that none waits long for the last one
_LEAST, _MOST = 16, 1024  # texts in a piece


class TranslatorPool:
    """Processes that translate in parallel, each with its share of the cores.

    ```python
    with TranslatorPool("saved_models/grammar", processes=2) as pool:
        pool.translate(["The old man loves the dog."], beam_size=4)
    ```

    For CPUs with many cores, where more threads in one process no longer speed up its small
    operations; on two cores it gains almost nothing (benchmarks/results). Each process holds a copy
    of the model. On a GPU, use one process and large batches instead.

    Args:
        folder: Folder of a saved translator.
        processes: Number of processes, at least 1; None: one per core that this process may use.
        precision, source_language, target_language: See `Translator.load`.

    Raises:
        ValueError: If `processes` is out of range, or for the reasons of `Translator.load`.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        processes: int | None = None,
        precision: str | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ):
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        if processes is None:
            processes = len(cores) or os.cpu_count() or 1
        require_whole("processes", processes, 1)
        self.processes = processes
        self._workers: list[subprocess.Popen] = []
        self._end = weakref.finalize(self, _stop, self._workers)
        self._idle: queue.SimpleQueue = queue.SimpleQueue()
        for number in range(processes):
            self._workers.append(_start(cores[number::processes] or cores))
        try:
            for worker in self._workers:
                languages = dict(source_language=source_language, target_language=target_language)
                _send(worker, dict(folder=os.fspath(folder), precision=precision) | languages)
            for worker in self._workers:
                _receive(worker)
                self._idle.put(worker)
        except BaseException:
            self.close()
            raise

    def translate(self, texts: Sequence[str], **options: Any) -> list[str]:
        """Return the same as `Translator.translate`; it takes no `prefixes` and no `constraint`."""
        return self._each("translate", texts, options)

    def nbest(self, texts: Sequence[str], **options: Any) -> list[list[Hypothesis]]:
        """Return the same as `Translator.nbest`; it takes no `prefixes` and no `constraint`."""
        found = self._each("nbest", texts, options)
        return [[Hypothesis(*hypothesis) for hypothesis in hypotheses] for hypotheses in found]

    def translate_stream(
        self, texts: Iterable[str], *, chunk_size: int = 2048, **options: Any
    ) -> Iterator[str]:
        """Yield the same as `Translator.translate_stream`, with `chunk_size` texts per process."""
        require_whole("chunk_size", chunk_size, 1)

        def stream(texts):
            while chunk := list(itertools.islice(texts, chunk_size * self.processes)):
                yield from self.translate(chunk, **options)

        return stream(iter(texts))

    def close(self) -> None:
        """End the processes."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _each(self, method, texts, options):
        texts = checked_texts(texts, "texts")
        for name in ("prefixes", "constraint"):
            require(name not in options, name, options.get(name), "left out")
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        size = -(-len(texts) // (_PIECES * self.processes))
        size = min(max(size, _LEAST), _MOST)
        pieces = [order[start : start + size] for start in range(0, len(order), size)]

        def ask(piece):
            worker = self._idle.get()
            try:
                _send(worker, {"method": method, "texts": [texts[i] for i in piece], **options})
                return _receive(worker)
            finally:
                self._idle.put(worker)

        results = [None] * len(texts)
        with ThreadPoolExecutor(self.processes) as executor:
            for piece, found in zip(pieces, executor.map(ask, pieces), strict=True):
                for i, result in zip(piece, found, strict=True):
                    results[i] = result
        return results


def _start(cores):
    """Start a process on these cores only: it inherits them from the thread that starts it."""
    allowed = os.sched_getaffinity(0) if cores else None
    try:
        if cores:
            os.sched_setaffinity(0, cores)
        return subprocess.Popen(
            [sys.executable, "-m", "keras_transformer.inference.pool"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
    finally:
        if cores:
            os.sched_setaffinity(0, allowed)


def _stop(workers):
    for worker in workers:
        worker.stdin.close()
    for worker in workers:
        worker.terminate()
        worker.wait()
        worker.stdout.close()


def _send(worker, message):
    try:
        worker.stdin.write(json.dumps(message) + "\n")
        worker.stdin.flush()
    except (OSError, ValueError):  # a broken or closed pipe: `_receive` reports the cause
        return


def _receive(worker):
    line = "" if worker.stdout.closed else worker.stdout.readline()
    if not line:
        raise RuntimeError(f"a process of the pool has ended with status {worker.poll()}")
    answer = json.loads(line)
    if "invalid" in answer:
        raise ValueError(answer["invalid"])
    if "error" in answer:
        raise RuntimeError(f"a process of the pool failed:\n{answer['error']}")
    return answer["found"]


def _serve() -> None:
    # Output of libraries goes to stderr; only the answers go to stdout.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    keep_compilations()
    translator = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if translator is None:
                translator, found = Translator.load(**message), None
            else:
                found = getattr(translator, message.pop("method"))(**message)
            if found and isinstance(found[0], list):
                found = [[(one.text, one.score) for one in hypotheses] for hypotheses in found]
            answer: dict[str, Any] = {"found": found}
        except ValueError as error:
            answer = {"invalid": str(error)}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _serve()
