"""Dynamic batching: texts of concurrent requests are translated together."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any, NamedTuple, Protocol

from keras_transformer.config import require, require_whole
from keras_transformer.serving.waiting import QueueFullError, TextJob, Waiting
from keras_transformer.system import interruption

LONGEST = 1.0  # seconds that a batch of files should take at most, because other texts wait


class HandlerError(RuntimeError):
    """A handler failed, or did not answer all texts: a fault of the server, not of the request."""


class Batch(NamedTuple):
    """A batch that was computed: its numbers of texts and of tokens, and how long it took.

    `waits` has, for each request whose first text is in the batch, the seconds that it waited.
    `model` and `version` are the handler's `name` and `version`, "" if it has none.
    """

    texts: int
    tokens: int
    seconds: float
    waits: list[float]
    model: str
    version: str


class Handler(Protocol):
    """The interface of a handler, which computes batches: translations, or one of `jobs`.

    Texts of different requests share a batch only if their handlers are equal.
    """

    def read(self, texts: Sequence[str]) -> tuple[Sequence[Any], list[int]]:
        """Return items for `search`, such as texts with ids, and the number of tokens of each."""

    def search(
        self, items: Sequence[Any], num_hypotheses: int, tokens_per_batch: int
    ) -> list[list[str]]:
        """Return the best translations of each text, best first.

        Args:
            items: The items from `read`.
            num_hypotheses: Maximum number of translations per text.
            tokens_per_batch: Maximum number of source tokens to compute at once.
        """


class Batcher:
    """A batcher: collects the texts of many requests, and computes one batch in each thread.

    Texts that arrive while all threads compute form the next batch. A batch takes texts from each
    client in turn, and from each of its requests in turn, so that a long document does not delay a
    single sentence. Files have batches of their own, which take turns with the others and take
    about `LONGEST` seconds each at most.

    Args:
        tokens_per_batch: Number of source tokens at which a batch is full.
        delay: Maximum seconds that a text waits for others while a thread is free.
        most_waiting: Maximum number of tokens in the queue; further requests are refused. A client
            (`turns.current`) may fill half of it, and so may the files of all clients.
        watch: Function called after each batch.
        threads: Number of batches that are computed at the same time.

    Raises:
        ValueError: If a value is out of range.
    """

    def __init__(
        self,
        tokens_per_batch: int = 4096,
        delay: float = 0.01,
        most_waiting: int = 200_000,
        watch: Callable[[Batch], None] | None = None,
        threads: int = 1,
    ):
        require(tokens_per_batch >= 1, "tokens_per_batch", tokens_per_batch, "at least 1")
        require(delay >= 0, "delay", delay, "at least 0")
        require(most_waiting >= 1, "most_waiting", most_waiting, "at least 1")
        require_whole("threads", threads, 1)
        self.tokens_per_batch, self.delay, self.most_waiting = tokens_per_batch, delay, most_waiting
        self._watch = watch
        self._most_of_files = max(tokens_per_batch // 4, 1)  # maximum tokens of a batch of files
        self._waiting = Waiting(most_waiting)
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, name="translate", daemon=True)
            for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        handler: Handler,
        texts: Sequence[Any],
        num_hypotheses: int = 1,
        costs: Sequence[int] | None = None,
    ) -> Future[list[list[str]]]:
        """Queue texts for translation.

        Args:
            handler: The handler that translates them.
            texts: The texts; if `costs` is given, the items from the handler's `read`.
            num_hypotheses: Maximum number of translations per text.
            costs: Number of tokens of each text; None: the handler reads them.

        Returns:
            A future of the best translations of each text. If it is cancelled, its remaining texts
            are dropped; with PyTorch, the search of a batch also ends if all of its futures are
            cancelled.

        Raises:
            TooLargeError, QueueFullError: See `check`; QueueFullError also after `close`.
        """
        items, costs = handler.read(texts) if costs is None and texts else (texts, costs or [])

        def run(items):
            results = handler.search(items, num_hypotheses, self.tokens_per_batch)
            if len(results) != len(items):
                raise HandlerError(
                    f"the handler gave {len(results)} results for {len(items)} texts"
                )
            return results

        return self._add(TextJob((handler, num_hypotheses), run, list(items), list(costs)))

    def call(self, function: Callable[[], Any], cost: int = 1) -> Future:
        """Queue a function to be called in a thread of the batcher.

        Args:
            function: Function without arguments.
            cost: Number of tokens that it counts as, in the limits of the queue.

        Returns:
            A future of the function's result.

        Raises:
            TooLargeError, QueueFullError: As in `submit`.
        """
        return self._add(TextJob(object(), lambda texts: [function()], [""], [cost], alone=True))

    @property
    def waiting(self) -> int:
        """Number of tokens in the queue."""
        return self._waiting.tokens

    def check(self, tokens: int) -> None:
        """Raise an error if the queue has no room for that many tokens of the current client.

        Raises:
            TooLargeError: If they alone exceed the client's share of the queue.
            QueueFullError: If they have no room now: in the queue, or in the share of the client or
                of all files.
        """
        self._waiting.check(tokens)

    def is_alive(self) -> bool:
        """Return whether all threads run."""
        return all(thread.is_alive() for thread in self._threads)

    def close(self, patience: float | None = None) -> None:
        """Finish all accepted requests, and accept no more.

        Args:
            patience: Seconds after which to return although requests are left; None: no limit.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        end = None if patience is None else time.monotonic() + patience
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))

    def _add(self, job):
        """Add a job to the queue; return the future of its results."""
        if not job.texts:
            job.future.set_result([])
            return job.future
        with self._changed:
            if self._closing:
                raise QueueFullError("the server is shutting down")
            self._waiting.add(job)
            self._changed.notify_all()
        job.future.add_done_callback(lambda future: self._forget(job))
        return job.future

    def _forget(self, job):
        with self._changed:
            self._waiting.remove(job)

    def _work(self):
        """Compute batches until the queue is closed and empty. Runs in each thread."""
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting:
                    return
                free = time.monotonic()
                self._wait_for_company()
                batch = self._take()
            if batch:
                self._run(batch, free)

    def _wait_for_company(self):
        """Wait until the batch is full, or its first text has waited for `delay` seconds.

        Return at once if the first job is a batch of its own, or the queue is closed.
        """
        while self._waiting and not self._closing and not self._waiting.first().alone:
            left = self._waiting.first().arrived + self.delay - time.monotonic()
            if left <= 0 or self.waiting >= self.tokens_per_batch:
                return
            self._changed.wait(left)

    def _take(self):
        """Take a batch; it is empty if another thread took the jobs, or they were cancelled."""
        if not self._waiting:
            return {}
        is_file = self._waiting.first().is_file
        return self._waiting.take(self._most_of_files if is_file else self.tokens_per_batch)

    def _run(self, batch, free):
        """Compute a batch; `free` is the time at which this thread became free for it."""
        texts = [job.texts[i] for job, numbers in batch.items() for i in numbers]
        tokens = sum(job.costs[i] for job, numbers in batch.items() for i in numbers)
        start = time.monotonic()
        try:
            with interruption.given_up_if(lambda: all(job.future.cancelled() for job in batch)):
                results = iter(next(iter(batch)).run(texts))
        except interruption.GivenUpError:
            return
        except Exception as error:
            if len(batch) > 1:  # one job may have made the batch fail: run each alone
                for job, numbers in batch.items():
                    self._run({job: numbers}, start)
            else:
                (job,) = batch
                _finish(job.future.set_exception, error)
            return
        seconds = time.monotonic() - start
        if next(iter(batch)).is_file:
            self._fit_files(tokens, seconds)
        for job, numbers in batch.items():
            if job.trace:
                since = (job.arrived, free) if numbers[0] == 0 else None
                job.trace.add_batch(
                    since, start, start + seconds, len(numbers), len(texts), tokens, *job.model
                )
        if self._watch:
            waits = [start - job.arrived for job, numbers in batch.items() if numbers[0] == 0]
            self._watch(Batch(len(texts), tokens, seconds, waits, *next(iter(batch)).model))
        for job, numbers in batch.items():
            for i in numbers:
                job.found[i] = next(results)
            job.left -= len(numbers)
            if not job.left:
                _finish(job.future.set_result, job.found[0] if job.alone else job.found)

    def _fit_files(self, tokens, seconds):
        """Adapt the size of batches of files to the time that this batch took."""
        most = self._most_of_files
        if seconds > LONGEST:
            self._most_of_files = max(most // 2, self.tokens_per_batch // 16, 1)
        elif seconds < LONGEST / 2 and 2 * tokens > most:
            self._most_of_files = min(2 * most, self.tokens_per_batch)


def _finish(setter, value):
    """Set a future's result or exception, unless it was cancelled."""
    with contextlib.suppress(InvalidStateError):
        setter(value)
