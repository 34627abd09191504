"""The text that tokens add to a prompt: at once, and token by token."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.inference.prompts import before_stop, held_back
from keras_transformer.inference.reply import common
from keras_transformer.text.text_tokenizer import TextTokenizer

_LEAST = 8  # ids of a prompt that are decoded with each token of a reply


def added_text(before: str, after: str) -> str:
    """Return what a text has that its beginning has not.

    Args:
        before: The beginning; it may end in U+FFFD for a character that `after` completes.
        after: The text.
    """
    return after[common(before, after) :]


def continuations(
    tokenizer: TextTokenizer, prompts: Sequence[Sequence[int]], ids: Sequence[Sequence[int]]
) -> list[str]:
    """Return the text that ids add to the text of each prompt, with the space before a first word.

    Args:
        tokenizer: The tokenizer.
        prompts: Token ids of each prompt.
        ids: Token ids that follow each prompt.
    """
    wholes = [[*prompt, *more] for prompt, more in zip(prompts, ids, strict=True)]
    texts = zip(tokenizer.decode(prompts), tokenizer.decode(wholes), strict=True)
    return [added_text(before, after) for before, after in texts]


def context_of(tokenizer: TextTokenizer, prompt: Sequence[int]) -> list[int]:
    """Return the last ids of a prompt, after which tokens have the text that they have after it.

    A tokenizer may leave out the space before the first word of a text: so the ids have a text,
    and do not begin within a character.
    """
    size = _LEAST
    while size < len(prompt):
        (text,) = tokenizer.decode([prompt[-size:]])
        if text and not text.startswith("\ufffd"):
            break
        size *= 2
    return list(prompt[-size:])


class Pieces:
    """Makes pieces of text of the tokens of a reply, up to a stop text.

    A piece is held back while it may be the beginning of a stop text or of a character.

    Args:
        tokenizer: The tokenizer.
        prompt: Token ids that the reply follows.
        stop: Texts that end the reply; they are not part of it.

    Attributes:
        ids: The last ids of the prompt and those of the reply.
        stopped: Whether a stop text was found; further tokens are ignored.
        text: The text of all tokens so far, a stop text included.
        whole: Number of its characters without those at its end that tokens have only begun.
    """

    def __init__(
        self, tokenizer: TextTokenizer, prompt: Sequence[int] = (), stop: Sequence[str] = ()
    ):
        self._tokenizer, self._stop = tokenizer, stop
        self.ids = context_of(tokenizer, prompt)
        (self._before,) = tokenizer.decode([self.ids])
        self._kept, self._given = "", 0
        self.text, self.whole, self.stopped = "", 0, False

    def add(self, token: int) -> str:
        """Add a token; return the text that is certain now, or "" if there is none."""
        if self.stopped:
            return ""
        self.ids.append(token)
        (whole,) = self._tokenizer.decode([self.ids])
        self.text = added_text(self._before, whole)
        self.whole = max(self.whole, len(self.text.rstrip("\ufffd")))
        self._kept = before_stop(self.text, self._stop)
        self.stopped = len(self._kept) < len(self.text)
        held = 0 if self.stopped else held_back(self.text, self._stop)
        return self._until(len(self._kept) - held)

    def rest(self) -> str:
        """Return the text that was held back, after the last token."""
        return self._until(len(self._kept))

    def _until(self, end):
        begin, self._given = self._given, max(self._given, end)
        return self._kept[begin : self._given]
