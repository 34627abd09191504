"""Continuous batching: replies of a language model that run side by side, one token per step."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.decoding import uniforms
from keras_transformer.language.prompts import room
from keras_transformer.language.reply import CacheRow, Event, Reply, choices, common
from keras_transformer.language.slot_caches import MOST_TOP, SlotCaches
from keras_transformer.models import DecoderOnly
from keras_transformer.models.continuation import longest
from keras_transformer.search import Generation


class Slots:
    """Slots in which up to `num_slots` prompts are continued at once.

    Replies can begin and end at different times.

    Each reply has its own options and random numbers. Its tokens are equal to those of
    `CausalLM.generate` and `stream` for the same prompt, options and seed.

    ```python
    slots = Slots(writer.model, num_slots=32)
    first = slots.join(prompt_ids, Generation(temperature=0.8, max_new_tokens=100), seed=1)
    while slots.running:
        for event in slots.turn():
            print(event.id, event.token, event.end)
    ```

    A turn reads at most `chunk` tokens of prompts that have joined, then makes one token of each
    running reply: while a long prompt is read, each token of the other replies waits for one chunk
    at most. The keys and values of finished replies stay cached until their slot is needed. If a
    prompt has a common prefix with the sequence of any slot, this prefix is not computed again. So
    of the next prompt of a chat, only the new message is computed:

    ```python
    slots = Slots(writer.model, num_slots=1)
    ids = encode(messages)                  # [system, user]
    reply = [event.token for event in slots.reply(ids) if event.end != "stop"]
    ids = encode(messages + more_messages)  # the same, the reply, and another user message
    reply = [event.token for event in slots.reply(ids) if event.end != "stop"]
    ```

    Not thread-safe: call the methods from one thread. Call `clear` after the model's weights have
    changed, or after an error in `turn`.

    Args:
        model: The model. If its attention has windows, keys and values of all tokens are kept
            nevertheless; the windows are masks.
        num_slots: Maximum number of replies at once, at least 1.
        length: Maximum number of tokens of a prompt and its reply; None: the model's `max_length`,
            or less if its rotary rates depend on the length, see `models.continuation.longest`.
        chunk: Maximum number of tokens of prompts that a turn reads, at least 1.

    Raises:
        ValueError: If a number is out of range.
        NotImplementedError: If the model has relative positions, or linear attention.
    """

    def __init__(
        self, model: DecoderOnly, num_slots: int = 8, length: int | None = None, chunk: int = 64
    ):
        most = longest(model)
        length = most if length is None else length
        for name, value in dict(num_slots=num_slots, length=length, chunk=chunk).items():
            require_whole(name, value, 1)
        require(length <= most, "length", length, f"at most {most}, the model's limit")
        self.model, self.num_slots, self.length, self.chunk = model, num_slots, length, chunk
        self._caches = SlotCaches(model, num_slots, length, chunk)
        self._ids = itertools.count()
        self._turns = 0
        self._begin()

    def _begin(self):
        self._rows = [CacheRow() for _ in range(self.num_slots)]  # running replies first
        self._running = 0
        self._joined: deque[Reply] = deque()  # prompts that are not read yet
        self._replies: dict[int, Reply] = {}

    @property
    def running(self) -> int:
        """Number of replies that have joined and not ended, from 0 to `num_slots`."""
        return len(self._replies)

    def join(
        self,
        prompt_ids: Sequence[int],
        search: Generation | None = None,
        seed: int | Sequence[int] = 0,
        *,
        end_ids: Collection[int] | None = None,
        top: int = 0,
    ) -> int:
        """Add a reply, and return its id.

        Args:
            prompt_ids: Token ids of the prompt; if empty, generation starts from BOS.
            search: Options of the reply, with `beam_size=1`; None: those of `Generation`.
            seed: Seed of sampling, as in `CausalLM.stream`. The seed `[seed, i]` gives the tokens
                that `CausalLM.generate` gives prompt i with `seed`.
            end_ids: Tokens that end the reply; None: the model's EOS ids.
            top: Number of most probable tokens in each event, at most 20.

        Raises:
            ValueError: If all slots are in use, the prompt fills the maximum length, or an argument
                is out of range.
        """
        search = search or Generation()
        if self.running == self.num_slots:
            raise ValueError(
                f"all num_slots={self.num_slots} slots are in use: wait until a reply has ended"
            )
        require(search.beam_size == 1, "beam_size", search.beam_size, "1 for replies in slots")
        require_whole("top", top, 0)
        require(top <= MOST_TOP, "top", top, f"at most {MOST_TOP}")
        prompt = list(prompt_ids) or [self.model.config.bos_id]
        most = room(search, prompt, self.length)
        if most < 1:
            raise ValueError(
                f"prompt_ids must have fewer than {search.max_length or self.length} tokens, "
                f"got {len(prompt)}"
            )
        size, accepted = self.model.config.vocab_size, "ids of the model's vocabulary"
        require(min(prompt) >= 0 and max(prompt) < size, "prompt_ids", prompt_ids, accepted)
        reply = Reply(
            id=next(self._ids),
            prompt=prompt,
            search=search,
            most=max(most - search.forced_eos, 1),  # the forced EOS is not part of the reply
            ends=frozenset(self.model.config.eos_ids if end_ids is None else end_ids),
            top=top,
        )
        if search.temperature is not None:
            seeds = [seed, 0] if isinstance(seed, int) else list(seed)
            reply.uniforms = uniforms([seeds], most)[0]
        if search.repetition_penalty != 1.0:
            reply.seen = np.zeros(size, bool)
            reply.seen[prompt] = True
        self._replies[reply.id] = reply
        self._joined.append(reply)
        return reply.id

    def leave(self, id: int) -> None:
        """Free the slot of a reply at once; nothing happens if it has ended."""
        reply = self._replies.pop(id, None)
        if reply is None:
            return
        if reply in self._joined:
            self._joined.remove(reply)
        if reply.row is not None:
            self._free(reply.row)

    def clear(self) -> None:
        """Remove all replies and all cached prefixes, for example after a change of the weights."""
        self._caches.clear()
        self._begin()

    def turn(self) -> list[Event]:
        """Read up to `chunk` tokens of prompts, and return the next token of each running reply.

        Raises:
            ValueError: If the model's logits are not finite.
        """
        self._turns += 1
        self._read()
        return self._step() if self._running else []

    def reply(self, prompt_ids: Sequence[int], *arguments: Any, **options: Any) -> Iterator[Event]:
        """Yield the events of a single reply; the arguments are those of `join`.

        If the caller stops before the reply ends, the reply leaves its slot.

        Raises:
            ValueError: If other replies run, or for the reasons of `join`.
        """
        require(self.running == 0, "running replies", self.running, "0: use join and turn")
        id = self.join(prompt_ids, *arguments, **options)
        try:
            while id in self._replies:
                yield from self.turn()
        finally:
            self.leave(id)

    def _read(self):
        """Read up to `chunk` tokens of joined prompts; a reply runs once its prompt is read."""
        left = self.chunk
        while self._joined and left:
            reply = self._joined[0]
            row = reply.row or self._place(reply)
            ids = row.ids
            # The last token of the prompt is the input of the step that makes the first new token.
            part = reply.prompt[len(ids) : min(len(ids) + left, len(reply.prompt) - 1)]
            if part:
                self._caches.read(self._rows.index(row), part, len(ids))
                ids += part
                left -= len(part)
            if len(ids) == len(reply.prompt) - 1:
                self._joined.popleft()
                self._swap(row, self._running)
                self._running += 1

    def _place(self, reply: Reply) -> CacheRow:
        """Return a free row for a reply, with the longest prefix of its prompt that a row holds."""
        begins = [common(row.ids, reply.prompt[:-1]) for row in self._rows]
        # Of equally long prefixes, prefer that of a free row, which need not be copied.
        source = max(zip(begins, self._rows, strict=True), key=lambda x: (x[0], not x[1].reply))[1]
        shared = max(begins)
        oldest = min((row for row in self._rows if not row.reply), key=lambda row: row.used)
        # Using a free row discards the rest of its cached sequence: reuse at least half of it.
        row = source if not source.reply and 2 * shared >= len(source.ids) else oldest
        if row is not source and shared:
            self._caches.copy(self._rows.index(source), self._rows.index(row), shared)
        row.ids, row.reply = reply.prompt[:shared], reply
        reply.row, reply.reused = row, shared
        return row

    def _step(self):
        """Make the next token of each running reply; return the events."""
        replies = [row.reply for row in self._rows[: self._running] if row.reply]
        outputs = self._caches.step(
            [reply.next_token for reply in replies],
            [len(row.ids) for row in self._rows],
            choices(replies, self.model.config.vocab_size),
            top=any(reply.top for reply in replies),
        )
        tokens, log_probs, *top = (x.tolist() for x in outputs)
        if not np.isfinite(log_probs).all():
            raise ValueError("model must give finite logits, got others: are weights NaN?")
        events = []
        for i, reply in enumerate(replies):
            self._rows[i].ids.append(reply.next_token)
            self._rows[i].used = self._turns
            end = reply.take(tokens[i])
            ranked = zip(top[1][i][: reply.top], top[0][i], strict=False) if reply.top else ()
            best = tuple(ranked)
            events.append(Event(reply.id, tokens[i], log_probs[i], best, end, reply.reused))
        for event in events:
            if event.end:
                self.leave(event.id)
        return events

    def _free(self, row):
        row.reply, row.used = None, self._turns
        if self._rows.index(row) < self._running:
            self._running -= 1
            self._swap(row, self._running)

    def _swap(self, row, place):
        """Exchange a row with the row at the index `place`."""
        i = self._rows.index(row)
        if i != place:
            other = self._rows[place]
            self._caches.swap(i, place, max(len(row.ids), len(other.ids)))
            self._rows[i], self._rows[place] = other, row
