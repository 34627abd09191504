"""The thread that generates replies: those of many requests share a language model's slots."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from keras_transformer import language
from keras_transformer.config import require
from keras_transformer.language.reply import Event
from keras_transformer.search import Generation
from keras_transformer.serving import traces
from keras_transformer.serving.waiting import QueueFullError, TooLargeError


@dataclass(eq=False)
class ReplyJob:
    """A reply that a request asks for.

    Args:
        prompt_ids: Token ids of the prompt.
        search, seed, end_ids, top: See `Slots.join`.
        listen: Called in the thread of `Replies` with each event, or with the error that ends the
            reply.

    Attributes:
        reused: Number of prompt tokens that were in the cache; known from the first event on.
        arrived: When the job was made, in seconds of `time.monotonic`.
        begun: Whether it has had an event.
        joined: When it got its slot, in seconds of `time.monotonic`.
        written: Number of its tokens so far.
        trace: The trace of its request.
    """

    prompt_ids: Sequence[int]
    search: Generation
    seed: int | Sequence[int]
    end_ids: Sequence[int] | None = None
    top: int = 0
    listen: Callable[[Event | Exception], None] = lambda event: None
    reused: int = 0
    begun: bool = False
    arrived: float = field(default_factory=time.monotonic)
    joined: float = 0.0
    written: int = 0
    trace: traces.Trace | None = field(default_factory=traces.current.get)

    @property
    def cost(self) -> int:
        """Number of tokens that the job adds to the waiting tokens."""
        return max(len(self.prompt_ids), 1)


class Replies:
    """A thread that generates the replies of many clients in the slots of a model.

    Clients take turns: a free slot goes to the client who has waited longest since its last reply
    got a slot, whatever the number of its requests.

    Args:
        model: The model.
        num_slots: Maximum number of replies at once.
        most_waiting: Maximum number of prompt tokens that wait for a slot; further requests are
            refused.
        watch: Called after each token with its job, and whether it is the job's first.

    Raises:
        ValueError: If a number is out of range.
        NotImplementedError: See `Slots`.
    """

    def __init__(
        self,
        model: Any,
        num_slots: int = 8,
        most_waiting: int = 200_000,
        watch: Callable[[ReplyJob, bool], None] = lambda job, is_first: None,
    ):
        require(most_waiting >= 1, "most_waiting", most_waiting, "at least 1")
        self.model, self.num_slots, self.most_waiting = model, num_slots, most_waiting
        self.waiting = 0  # tokens of the prompts that wait for a slot
        self._watch = watch
        self._clients: dict[Hashable, deque[ReplyJob]] = {}  # the next in turn first
        self._running: dict[int, ReplyJob] = {}
        self._cancelled: list[ReplyJob] = []
        self._changed = threading.Condition()
        self._closing = False
        self._slots = language.Slots(model, num_slots)
        self._warm_up()
        self._thread = threading.Thread(target=self._work, name="chat", daemon=True)
        self._thread.start()

    @property
    def length(self) -> int:
        """Maximum number of tokens of a prompt and its reply."""
        return self._slots.length

    @property
    def running(self) -> int:
        """Number of slots in use."""
        return len(self._running)

    def submit(self, client: Hashable, jobs: Sequence[ReplyJob]) -> None:
        """Queue the replies of a request.

        Args:
            client: Sender of the request; clients take turns.
            jobs: The replies.

        Raises:
            TooLargeError: If the prompts alone exceed `most_waiting`.
            QueueFullError: If they exceed it together with the waiting prompts, or after `close`.
        """
        tokens = sum(job.cost for job in jobs)
        self.check_size(tokens)
        with self._changed:
            if self._closing:
                raise QueueFullError("the server is shutting down")
            if self.waiting + tokens > self.most_waiting:
                raise QueueFullError(
                    f"{self.waiting} of at most {self.most_waiting} tokens are waiting"
                )
            self.waiting += tokens
            self._clients.setdefault(client, deque()).extend(jobs)
            self._changed.notify()

    def check_size(self, tokens: int) -> None:
        """Raise TooLargeError if a request of so many prompt tokens exceeds `most_waiting`."""
        if tokens > self.most_waiting:
            raise TooLargeError(
                f"a request must have at most {self.most_waiting} tokens, got {tokens}"
            )

    def cancel(self, jobs: Sequence[ReplyJob]) -> None:
        """End running or waiting replies; their slots are free after the current step."""
        with self._changed:
            self._cancelled += jobs
            self._changed.notify()

    def is_alive(self) -> bool:
        """Return whether the thread runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Finish all accepted replies, and accept no more."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _warm_up(self):
        """Generate tokens with all slots and with one, so that the first requests are fast."""
        for count in (self.num_slots, 1):
            for i in range(count):
                self._slots.join([i % 2] * 2, Generation(max_new_tokens=1, temperature=1.0))
            while self._slots.running:
                self._slots.turn()

    def _work(self):
        """Generate replies until the thread is closed. Runs in the thread."""
        while True:
            with self._changed:
                while not (self._clients or self._running or self._cancelled or self._closing):
                    self._changed.wait()
                if self._closing and not (self._clients or self._running):
                    return
                self._leave()
                self._join()
            try:
                events = self._slots.turn()
            except Exception as error:
                self._fail(error)
                continue
            for event in events:
                self._tell(event)

    def _leave(self):
        """Remove cancelled jobs from the slots and from the queues of their clients."""
        gone, self._cancelled = set(self._cancelled), []
        for id in [id for id, job in self._running.items() if job in gone]:
            self._slots.leave(id)
            del self._running[id]
        if not gone:
            return
        for client, jobs in list(self._clients.items()):
            left = deque(job for job in jobs if job not in gone)
            self.waiting -= sum(job.cost for job in gone & set(jobs))
            self._clients[client] = left
            if not left:
                del self._clients[client]

    def _join(self):
        """Give free slots to the clients in turn."""
        while self._clients and self._slots.running < self.num_slots:
            client = next(iter(self._clients))
            jobs = self._clients.pop(client)
            job = jobs.popleft()
            if jobs:
                self._clients[client] = jobs  # at the end
            self.waiting -= job.cost
            try:
                id = self._slots.join(
                    job.prompt_ids, job.search, job.seed, end_ids=job.end_ids, top=job.top
                )
            except Exception as error:
                job.listen(error)
            else:
                self._running[id] = job
                job.joined = time.monotonic()

    def _tell(self, event):
        """Send an event to its job, and record the token."""
        job = self._running[event.id]
        is_first, job.begun = not job.begun, True
        job.reused = event.reused
        job.written += 1
        if event.end:
            del self._running[event.id]
            if job.trace:
                job.trace.add("queue", job.arrived, job.joined)
                job.trace.add("search", job.joined, time.monotonic(), tokens=job.written)
        self._watch(job, is_first)
        job.listen(event)

    def _fail(self, error):
        """Send an error to all running jobs, and empty the slots."""
        running, self._running = self._running, {}
        self._slots.clear()
        for job in running.values():
            job.listen(error)
