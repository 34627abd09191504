"""Builders of OpenAI's JSON for replies: choices, chunks, log-probabilities and usage."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from keras_transformer.serving.token_texts import Token


class Form:
    """Base class of builders of OpenAI's JSON for replies, whole or as the chunks of a stream.

    `ChatForm` is for chat completions, `CompletionForm` for completions.

    Args:
        model: Name of the model.
        top: Number of most probable tokens to list at each position; None: no log-probabilities.
    """

    continues: bool  # whether a reply continues the text of its prompt, or is a text of its own
    prefix: str
    whole_object: str
    chunk_object: str

    def __init__(self, model: str, top: int | None):
        self.top = top
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
        """Return the choice of a chunk to send before a reply's text; None: send no such chunk."""
        return None

    def choice(
        self, index: int, text: str, tokens: Sequence[Token], end: str | None
    ) -> dict[str, Any]:
        """Return a choice of a whole answer.

        Args:
            index: Number of the choice.
            text: Its text.
            tokens: Its tokens; not used if `top` is None.
            end: Why it ended: "stop" or "length"; None: it goes on in a later chunk.
        """
        raise NotImplementedError

    def part(
        self, index: int, text: str, tokens: Sequence[Token], end: str | None
    ) -> dict[str, Any]:
        """Return a choice of a chunk; the arguments are those of `choice`."""
        return self.choice(index, text, tokens, end)


class ChatForm(Form):
    """Builder of the answers of `/v1/chat/completions`."""

    continues, prefix = False, "chatcmpl"
    whole_object, chunk_object = "chat.completion", "chat.completion.chunk"

    def first(self, index: int) -> dict[str, Any]:
        """Return the choice that gives the role of the message, with an empty text."""
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def choice(
        self, index: int, text: str, tokens: Sequence[Token], end: str | None
    ) -> dict[str, Any]:
        """Return a choice with the message of the assistant."""
        message = {"role": "assistant", "content": text, "refusal": None}
        return {"index": index, "message": message, **self._rest(tokens, end)}

    def part(
        self, index: int, text: str, tokens: Sequence[Token], end: str | None
    ) -> dict[str, Any]:
        """Return a choice with a piece of the message."""
        return {
            "index": index,
            "delta": {"content": text} if text else {},
            **self._rest(tokens, end),
        }

    def _rest(self, tokens, end):
        """Return the log-probabilities and the end of a choice."""
        log_probs = None
        if self.top is not None:
            content = [
                _shown(token) | {"top_logprobs": [_shown(alternative) for alternative in token.top]}
                for token in tokens
            ]
            log_probs = {"content": content, "refusal": None}
        return {"logprobs": log_probs, "finish_reason": end}


def _shown(token):
    return {"token": token.text, "logprob": token.log_prob, "bytes": list(token.bytes)}


class CompletionForm(Form):
    """Builder of the answers of `/v1/completions`."""

    continues, prefix = True, "cmpl"
    whole_object = chunk_object = "text_completion"

    def choice(
        self, index: int, text: str, tokens: Sequence[Token], end: str | None
    ) -> dict[str, Any]:
        """Return a choice with the text."""
        log_probs = None
        if self.top is not None:
            log_probs = {
                "tokens": [token.text for token in tokens],
                "token_logprobs": [token.log_prob for token in tokens],
                "top_logprobs": [_by_text(token.top) for token in tokens],
                "text_offset": [token.offset for token in tokens],
            }
        return {"index": index, "text": text, "logprobs": log_probs, "finish_reason": end}


def _by_text(top):
    """Map texts of tokens to log-probabilities; a token whose text repeats is named by its id."""
    log_probs: dict[str, float] = {}
    for token in top:  # the most probable first
        name = f"token_id:{token.id}" if token.text in log_probs else token.text
        log_probs[name] = token.log_prob
    return log_probs


def usage(prompt: int, cached: int, completion: int) -> dict[str, Any]:
    """Return the field `usage` of an answer.

    Args:
        prompt: Number of tokens of the prompts.
        cached: Number of these that were in the cache.
        completion: Number of tokens of the replies.
    """
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
