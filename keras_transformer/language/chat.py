"""The `Chat`, which returns the reply of a language model to a list of messages."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from keras_transformer.language.causal_lm import CausalLM
from keras_transformer.language.prompts import before_stop
from keras_transformer.language.slots import Slots
from keras_transformer.language.streaming import streamed_text
from keras_transformer.search import GENERATE, STREAM, Generation, spelled_out
from keras_transformer.text.chat_template import ChatTemplate, Message
from keras_transformer.text.tokenizer import checked_texts

REPLY = 512  # default of `max_new_tokens`


class Chat:
    """A language model with its chat template: replies to lists of messages.

    ```python
    chat = Chat.load("saved_models/assistant")
    messages = [{"role": "user", "content": "Who wrote Hamlet?"}]
    print(chat.reply(messages))
    for piece in chat.stream(messages, temperature=0.7, seed=1):
        print(piece, end="", flush=True)
    ```

    The template turns messages into the text of a prompt, special tokens included; the tokenizer
    adds none, so there is no second BOS. A reply ends at the token that ends a turn in the
    template, or at an EOS token of the model.

    The keys and values of the last chat stay cached, except in models with linear attention or
    relative positions. If the next chat begins with the same tokens,
    only the tokens after this common prefix are computed. Make a new `Chat` after the model's
    weights have changed.

    Args:
        writer: A language model.
        template: Chat template that the model was trained with; None: `writer.template`.

    Attributes:
        ends: Ids of the tokens that end a reply.

    Raises:
        ImportError: If jinja2 is not installed.
        ValueError: If there is no template, or it cannot render a chat.
    """

    def __init__(self, writer: CausalLM, template: ChatTemplate | None = None):
        template = template or writer.template
        if template is None:
            raise ValueError(
                "the model has no chat template (chat_template.jinja in its folder): it was not "
                "trained on chats; `keras-transformer train --task chat` trains it on them"
            )
        self.writer, self.template = writer, template
        self._slots = None
        # Models with linear attention or relative positions read every prompt from its start.
        with contextlib.suppress(NotImplementedError):
            self._slots = Slots(writer.model, num_slots=1)
        config = writer.model.config
        self.ends: tuple[int, ...] = config.eos_ids
        # The first added token that the template writes after a reply ends the turn.
        self._tokenizer = writer.tokenizer.with_control_tokens(template.source)
        text = template.after_reply(self._tokenizer.special_names)
        (after,) = self._tokenizer.encode([text], framed=False)
        added = writer.tokenizer.added_ids
        if (end := next((x for x in after if x in added), None)) is not None:
            self.ends = tuple(dict.fromkeys([*self.ends, end]))

    @classmethod
    def load(cls, folder: str | os.PathLike, precision: str | None = None) -> Chat:
        """Load a saved language model that has a chat template.

        Args:
            folder: See `CausalLM.load`.
            precision: See `Translator.load`; None: as saved.

        Raises:
            ImportError, ValueError: See `CausalLM.load` and `Chat`.
        """
        try:
            return cls(CausalLM.load(folder, precision))
        except ValueError as error:
            if os.fspath(folder) in str(error):
                raise
            raise ValueError(f"{folder}: {error}") from error

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a chat, up to the place where a reply begins.

        If the text of a message spells a special token, it is encoded as plain text.

        Args:
            messages: See `ChatTemplate.render`.

        Raises:
            ValueError: If the messages are malformed, the template rejects them, or they fill the
                model's `max_length`.
        """
        text = self.template.render(messages, special_names=self._tokenizer.special_names)
        (ids,) = self._tokenizer.encode([text], framed=False)
        limit = self.writer.model.config.max_length
        if len(ids) >= limit:
            raise ValueError(
                f"messages must have fewer than {limit} tokens together, the model's max_length, "
                f"got {len(ids)}: leave out earlier messages"
            )
        return ids

    def _options(self, options, accepted):
        defaults = {"max_new_tokens": REPLY, **self.writer.search}
        return Generation.of(options, accepted, defaults)

    @spelled_out(Generation, STREAM, max_new_tokens=REPLY)
    def reply(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        **options: Any,
    ) -> str:
        """Return the reply to a chat.

        Args:
            messages: See `ChatTemplate.render`. The last one is usually the user's.
            stop: Texts that end the reply; they are not part of it.
            seed: Seed of sampling; None: a new one for each call.
            options: Options of `search.Generation`, such as `max_new_tokens=512` and
                `temperature=None`, except those of beam search.

        Raises:
            TypeError: If an option is unknown.
            ValueError: If an option is out of range, or for the reasons of `encode`.
        """
        return "".join(self.stream(messages, stop=stop, seed=seed, **options))

    @spelled_out(Generation, STREAM, max_new_tokens=REPLY)
    def stream(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        **options: Any,
    ) -> Iterator[str]:
        """Yield the reply to a chat, piece by piece as it is generated; arguments as in `reply`."""
        search = self._options(options, STREAM)
        stop, ids = checked_texts(stop, "stop"), self.encode(messages)
        tokens = self._tokens(ids, search, seed)
        return streamed_text(tokens, self.writer.tokenizer, stop=stop)

    def _tokens(self, ids, search, seed):
        """Yield the tokens of a reply, with the cache of `_slots` if it can be used."""
        search = search or self._options({}, STREAM)
        slots, end = self._slots, len(ids) + search.max_new_tokens
        # Slots may be shorter than the model's limit. Another reply may still run in them, if its
        # caller has not read it to the end.
        end = min(end, self.writer.model.config.max_length)
        if slots is None or slots.running or end > slots.length:
            yield from self.writer.stream_ids(ids, search, seed, self.ends)
            return
        if seed is None:
            seed = int(np.random.default_rng().integers(1 << 31))
        for event in slots.reply(ids, search, seed, end_ids=self.ends):
            if event.end != "stop":
                yield event.token

    @spelled_out(Generation, GENERATE, max_new_tokens=REPLY)
    def replies(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        stop: Sequence[str] = (),
        seed: int | None = None,
        tokens_per_batch: int = 8192,
        **options: Any,
    ) -> list[str]:
        """Return the reply to each chat, in batches as in `CausalLM.generate`.

        Args:
            chats: The messages of each chat.
            stop, seed, tokens_per_batch, options: See `CausalLM.generate`; the default of
                `max_new_tokens` is 512.

        Raises:
            TypeError, ValueError: See `reply`.
        """
        search = self._options(options, GENERATE)
        stop = checked_texts(stop, "stop")
        prompts = [self.encode(messages) for messages in chats]
        ids = self.writer.generate_ids(prompts, search, seed, tokens_per_batch, self.ends)
        return [before_stop(text, stop) for text in self.writer.tokenizer.decode(ids)]
