"""Jobs that wait for a batch: limits on waiting tokens, and turns among clients."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import Any

from keras_transformer.serving import traces, turns


class QueueFullError(Exception):
    """The queue has no room for a request, or the server stops; the client should retry later."""


class TooLargeError(Exception):
    """A request is larger than the server accepts, whatever the state of the queue."""


class TextJob:
    """The texts of a request, and the results so far.

    Args:
        key: Only jobs with equal keys share a batch, and texts of files only with those of files.
        run: Function that computes the results of texts of this key.
        texts: The texts.
        costs: Number of tokens of each text.
        alone: Whether the job is a batch of its own; it has one text, whose result is the job's.

    Attributes:
        next: Index of the first text that no batch has taken; the number of texts: none is left.
        left: Number of texts without a result.
        found: The results so far; None for a text without a result.
        model: Name and version of the model, from the handler in `key`; "" without a handler.
    """

    def __init__(
        self,
        key: Hashable,
        run: Callable[[list[Any]], Sequence[Any]],
        texts: list[Any],
        costs: list[int],
        alone: bool = False,
    ):
        self.run, self.texts, self.costs, self.alone = run, texts, costs, alone
        self.client = turns.current.get()
        self.is_file = self.client is not None and self.client.sends_file
        self.key = key, self.is_file
        self.future: Future = Future()
        self.arrived = time.monotonic()
        self.next, self.left = 0, len(texts)
        handler = key[0] if isinstance(key, tuple) else None
        handler = getattr(handler, "handler", handler)  # jobs on pairs wrap a handler
        self.model = getattr(handler, "name", ""), getattr(handler, "version", "")
        self.found: list[Any] = [None] * len(texts)
        self.trace = traces.current.get()


class Waiting:
    """The waiting jobs of each client. Not thread-safe.

    Args:
        most: Maximum number of tokens; a client may have half of it, and so may the files of all
            clients.

    Attributes:
        tokens: Number of tokens that wait.
    """

    def __init__(self, most: int):
        self.most, self.tokens = most, 0
        self._jobs: dict[turns.Client | None, deque[TextJob]] = {}  # the next in turn first
        self._held: Counter[Hashable] = Counter()  # waiting tokens of each share

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __len__(self) -> int:
        # A copy: another thread may add a client meanwhile.
        return sum(map(len, tuple(self._jobs.values())))

    def check(self, tokens: int) -> None:
        """Raise an error if the current client may not add so many tokens.

        Raises:
            TooLargeError: If they alone exceed the client's share of the queue.
            QueueFullError: If they have no room now: in the queue, or in the share of the client or
                of all files.
        """
        shares = _shares(turns.current.get())
        most = self.most // 2 if shares else self.most
        if tokens > most:
            raise TooLargeError(f"a request must have at most {most} tokens, got {tokens}")
        for share, owner in shares.items():
            if self._held[share] + tokens > most:
                held = f"{self._held[share]} of at most {most} tokens"
                raise QueueFullError(f"{held} of {owner} are waiting")
        if self.tokens + tokens > self.most:
            raise QueueFullError(f"{self.tokens} of at most {self.most} tokens are waiting")

    def add(self, job: TextJob) -> None:
        """Add a job.

        Raises:
            TooLargeError, QueueFullError: See `check`.
        """
        tokens = sum(job.costs)
        self.check(tokens)
        self._count(job, tokens)
        self._jobs.setdefault(job.client, deque()).append(job)

    def remove(self, job: TextJob) -> None:
        """Remove the waiting texts of a job that was cancelled or failed."""
        if job.next < len(job.texts):
            self._count(job, -sum(job.costs[job.next :]))
            job.next = len(job.texts)
            self._jobs[job.client].remove(job)
            if not self._jobs[job.client]:
                del self._jobs[job.client]

    def first(self) -> TextJob:
        """Return the first job of the client whose turn it is."""
        return next(iter(self._jobs.values()))[0]

    def take(self, most: int) -> dict[TextJob, list[int]]:
        """Take a batch of the first job and the others with its key; return text indices by job.

        Clients, and the jobs of each client, take turns, one text at a time. Cancelled jobs are
        skipped.

        Args:
            most: Maximum number of tokens of the batch; a batch of one text may have more.
        """
        batch: dict[TextJob, list[int]] = {}
        key, tokens = self.first().key, 0
        clients = deque(deque(x for x in jobs if x.key == key) for jobs in self._jobs.values())
        while clients:
            jobs = clients.popleft()
            job = jobs.popleft() if jobs else None
            if job is None:
                continue
            clients.append(jobs)
            cost = job.costs[job.next]
            if job.future.done() or (batch and tokens + cost > most):
                continue
            tokens += cost
            self._count(job, -cost)
            batch.setdefault(job, []).append(job.next)
            job.next += 1
            if job.next < len(job.texts):
                jobs.append(job)
        self._take_turns(batch)
        return batch

    def _take_turns(self, batch):
        """Move the first client to the end, and a client's jobs in the batch behind its others."""
        first, *others = self._jobs
        waiting = {}
        for client in (*others, first):
            jobs = sorted(self._jobs[client], key=lambda job: job in batch)
            left = deque(job for job in jobs if job.next < len(job.texts))
            if left:
                waiting[client] = left
        self._jobs = waiting

    def _count(self, job, tokens):
        """Add a number of tokens, negative to subtract, to the counts of waiting tokens."""
        self.tokens += tokens
        for share in _shares(job.client):
            self._held[share] += tokens
            if not self._held[share]:
                del self._held[share]


def _shares(client):
    """Map a client's shares of the queue to their names in messages; empty without a client."""
    if client is None:
        return {}
    return {client: "yours"} | ({"files": "files"} if client.sends_file else {})
