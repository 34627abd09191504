"""The text of a reply that arrives token by token."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.inference.prompts import before_stop, held_back
from keras_transformer.text.text_tokenizer import TextTokenizer


class Pieces:
    """Makes pieces of text of the tokens of a reply, up to a stop text.

    A piece is held back while it may be the beginning of a stop text or of a character.

    Args:
        tokenizer: The tokenizer.
        stop: Texts that end the reply; they are not part of it.

    Attributes:
        stopped: Whether a stop text was found; further tokens are ignored.
    """

    def __init__(self, tokenizer: TextTokenizer, stop: Sequence[str] = ()):
        self._tokenizer, self._stop = tokenizer, stop
        self._ids: list[int] = []
        self._text, self._given = "", 0
        self.stopped = False

    def add(self, token: int) -> str:
        """Add a token; return the text that is certain now, or "" if there is none."""
        if self.stopped:
            return ""
        self._ids.append(token)
        (text,) = self._tokenizer.decode([self._ids])
        whole = before_stop(text, self._stop)
        self.stopped, self._text = len(whole) < len(text), whole
        held = 0 if self.stopped else held_back(text, self._stop)
        return self._until(len(whole) - held)

    def rest(self) -> str:
        """Return the text that was held back, after the last token."""
        return self._until(len(self._text))

    def _until(self, end):
        begin, self._given = self._given, max(self._given, end)
        return self._text[begin : self._given]
