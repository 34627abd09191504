"""The answer to a request of OpenAI's API: the events of its replies become JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.language.added_text import Pieces
from keras_transformer.language.reply import Event
from keras_transformer.language.stops import Stops
from keras_transformer.serving.openai_forms import Form, usage
from keras_transformer.serving.replies import Replies, ReplyJob
from keras_transformer.serving.token_texts import Token, TokenTexts


class OpenAIAnswer:
    """The replies to one request, as one JSON object or as the chunks of a stream.

    Args:
        replies: The thread that generates them.
        names: Decoder of the model's tokens.
        jobs: One job for each reply; `OpenAIAnswer` sets `listen` of each.
        n: Number of replies for each prompt, in consecutive jobs.
        stop: Texts that end a reply.
        form: Builder of the answer's JSON.
    """

    def __init__(
        self,
        replies: Replies,
        names: TokenTexts,
        jobs: Sequence[ReplyJob],
        n: int,
        stop: Sequence[str],
        form: Form,
    ):
        self._replies, self._form, self._jobs, self._n = replies, form, jobs, n
        self._names = names
        self._stops = Stops(stop)
        self._replied = [_Replied() for _ in jobs]
        self._arrived: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue()

    def begin(self, client: Hashable) -> None:
        """Queue the jobs.

        Args:
            client: Sender of the request; clients take turns.

        Raises:
            TooLargeError, QueueFullError: As in `Replies.submit`.
        """
        loop = asyncio.get_running_loop()

        def listener(index):
            def listen(event):
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self._arrived.put_nowait, (index, event))

            return listen

        for index, job in enumerate(self._jobs):
            job.listen = listener(index)
        self._replies.submit(client, self._jobs)

    def close(self) -> None:
        """Cancel the replies that have not ended."""
        pairs = zip(self._jobs, self._replied, strict=True)
        if left := [job for job, reply in pairs if reply.end is None]:
            self._replies.cancel(left)

    async def whole(self) -> dict[str, Any]:
        """Return the answer when all replies have ended; raise the error of a reply that failed."""
        texts = ["" for _ in self._jobs]
        tokens: list[list[Token]] = [[] for _ in self._jobs]
        async for index, piece, more, _ in self._pieces():
            texts[index] += piece
            tokens[index] += more

        def put_together():
            choices = [
                self._form.choice(index, text, tokens[index], self._replied[index].end)
                for index, text in enumerate(texts)
            ]
            return self._form.whole(choices, self._usage())

        return await asyncio.to_thread(put_together)

    async def chunks(self, with_usage: bool) -> AsyncIterator[dict[str, Any]]:
        """Yield the chunks of the answer.

        Args:
            with_usage: Whether an additional last chunk has the numbers of tokens; the other chunks
                then have `usage: null`.
        """
        form, more = self._form, {"usage": None} if with_usage else {}
        for index in range(len(self._jobs)):
            if (first := form.first(index)) is not None:
                yield form.chunk([first], **more)
        async for index, piece, tokens, end in self._pieces():
            if piece or end or form.top is not None:
                yield form.chunk([form.part(index, piece, tokens, end)], **more)
        if with_usage:
            yield form.chunk([], usage=self._usage())

    async def _pieces(self):
        """Yield (index of a reply, its next text, its next tokens, why it ended or None).

        The tokens are empty without log-probabilities. All events of a reply that have arrived
        become one piece: with a slow client or a busy server, pieces are fewer and longer.
        """
        while any(reply.end is None for reply in self._replied):
            arrived = {}
            index, event = await self._arrived.get()
            arrived[index] = [event]
            while not self._arrived.empty():
                index, event = self._arrived.get_nowait()
                arrived.setdefault(index, []).append(event)
            for index, events in arrived.items():
                if self._replied[index].end is None:
                    yield index, *self._taken(index, events)

    def _taken(self, index, events):
        """Take events of a reply; return their text and tokens, and why it ended, or None."""
        reply, piece, tokens = self._replied[index], "", []
        if reply.pieces is None:
            prompt = self._jobs[index].prompt_ids if self._form.continues else ()
            reply.pieces = self._names.pieces(prompt, self._stops)
        for event in events:
            if isinstance(event, Exception):
                raise event
            if event.end != "stop":
                if self._form.top is None:
                    piece += reply.pieces.add(event.token)
                else:
                    more, token = self._names.add(event, reply.pieces)
                    piece += more
                    tokens.append(token)
                reply.length += 1
            if reply.pieces.stopped:
                reply.end = "stop"
                if event.end is None:
                    self._replies.cancel([self._jobs[index]])
                break
            if event.end:
                reply.end = event.end
                piece += reply.pieces.rest()
        return piece, tokens, reply.end

    def _usage(self):
        first = self._jobs[:: self._n]  # one job for each prompt
        prompt, cached = sum(len(job.prompt_ids) for job in first), sum(job.reused for job in first)
        return usage(prompt, cached, sum(reply.length for reply in self._replied))


@dataclass
class _Replied:
    """The state of a reply that is being received."""

    pieces: Pieces | None = None  # None until its first token
    length: int = 0  # number of tokens
    end: str | None = None  # why it ended; None: it has not ended
