"""Answers in OpenAI's forms: whole replies, chunks of streamed ones, log-probabilities, usage."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from keras_transformer.inference.reply import Event
from keras_transformer.text.text_tokenizer import TextTokenizer


class Names:
    """The text of single tokens.

    Args:
        tokenizer: The tokenizer.
    """

    def __init__(self, tokenizer: TextTokenizer):
        self._tokenizer = tokenizer
        self._pieces = {i: piece for piece, i in tokenizer.pieces().items()}

    def of(self, token: int) -> str:
        """Return the text of a token; for a special token, its name."""
        (text,) = self._tokenizer.decode([[token]])
        return text or self._pieces.get(token, "")


class Form:
    """The form of the answers of one API; subclasses are `ChatForm` and `CompletionForm`.

    Args:
        model: Name of the model.
        names: The text of its tokens.
        top: Number of most probable tokens at each place; None: no log-probabilities.
    """

    prefix: str
    whole_object: str
    chunk_object: str

    def __init__(self, model: str, names: Names, top: int | None):
        self.names, self.top = names, top
        self._common = {
            "id": f"{self.prefix}-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model,
            "system_fingerprint": None,
        }

    def whole(self, choices: list[dict[str, Any]], usage: dict[str, Any]) -> dict[str, Any]:
        """Return the answer with all choices."""
        return {**self._common, "object": self.whole_object, "choices": choices, "usage": usage}

    def chunk(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Return a chunk of a streamed answer."""
        return {**self._common, "object": self.chunk_object, "choices": choices, **more}

    def first(self, index: int) -> dict[str, Any] | None:
        """Return the choice of the first chunk of a reply; None if there is no such chunk."""
        return None

    def choice(
        self, index: int, text: str, events: Sequence[Event], end: str | None, begin: int = 0
    ) -> dict[str, Any]:
        """Return a choice of a whole answer.

        Args:
            index: Number of the choice.
            text: Its text.
            events: Its tokens.
            end: Why it ended: "stop" or "length".
            begin: Number of characters of the reply that precede `text`.
        """
        raise NotImplementedError

    def part(
        self, index: int, text: str, events: Sequence[Event], end: str | None, begin: int
    ) -> dict[str, Any]:
        """Return a choice of a chunk; the arguments are those of `choice`."""
        return self.choice(index, text, events, end, begin)


class ChatForm(Form):
    """The form of `/v1/chat/completions`."""

    prefix = "chatcmpl"
    whole_object, chunk_object = "chat.completion", "chat.completion.chunk"

    def first(self, index: int) -> dict[str, Any]:
        """Return the choice that says whose turn it is."""
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def choice(
        self, index: int, text: str, events: Sequence[Event], end: str | None, begin: int = 0
    ) -> dict[str, Any]:
        """Return a choice with the message of the assistant."""
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, **self._rest(events, end)}

    def part(
        self, index: int, text: str, events: Sequence[Event], end: str | None, begin: int
    ) -> dict[str, Any]:
        """Return a choice with a piece of the message."""
        return {
            "index": index,
            "delta": {"content": text} if text else {},
            **self._rest(events, end),
        }

    def _rest(self, events, end):
        log_probs = None
        if self.top is not None:
            content = [
                self._token(event.token, event.log_prob)
                | {"top_logprobs": [self._token(*one) for one in event.top]}
                for event in events
            ]
            log_probs = {"content": content, "refusal": None}
        return {"logprobs": log_probs, "finish_reason": end}

    def _token(self, token, log_prob):
        text = self.names.of(token)
        # A token may be a part of a character, which has no text.
        encoded = None if "\ufffd" in text else list(text.encode())
        return {"token": text, "logprob": log_prob, "bytes": encoded}


class CompletionForm(Form):
    """The form of `/v1/completions`."""

    prefix = "cmpl"
    whole_object = chunk_object = "text_completion"

    def choice(
        self, index: int, text: str, events: Sequence[Event], end: str | None, begin: int = 0
    ) -> dict[str, Any]:
        """Return a choice with the text."""
        log_probs = None
        if self.top is not None:
            tokens, offsets = [self.names.of(event.token) for event in events], []
            for token in tokens:
                offsets.append(begin)
                begin += len(token)
            log_probs = {
                "tokens": tokens,
                "token_logprobs": [event.log_prob for event in events],
                "top_logprobs": [
                    {self.names.of(token): x for token, x in event.top} for event in events
                ],
                "text_offset": offsets,
            }
        return {"index": index, "text": text, "logprobs": log_probs, "finish_reason": end}


def usage(prompt: int, cached: int, completion: int) -> dict[str, Any]:
    """Return the number of tokens of a request.

    Args:
        prompt: Tokens of the prompts.
        cached: Those of them that did not have to be read.
        completion: Tokens of the replies.
    """
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
