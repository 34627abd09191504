"""The text that new tokens add to a prompt: of all tokens at once, or token by token."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.language.reply import common
from keras_transformer.language.stops import Stops
from keras_transformer.text.text_tokenizer import TextTokenizer

_LEAST = 8  # earlier ids that are decoded together with each new token
_MOST = 64  # maximum number of these ids, if the last `_LEAST` have no text or split a character


def added_text(before: str, after: str) -> str:
    """Return the part of a text that follows its known beginning.

    Args:
        before: The beginning. It may end in U+FFFD, where `after` has the complete character.
        after: The whole text.
    """
    return after[common(before, after) :]


def continuations(
    tokenizer: TextTokenizer, prompts: Sequence[Sequence[int]], ids: Sequence[Sequence[int]]
) -> list[str]:
    """Return the text that ids add to each prompt, including a space before their first word.

    Args:
        tokenizer: The tokenizer.
        prompts: Token ids of each prompt.
        ids: New token ids after each prompt.
    """
    wholes = [[*prompt, *more] for prompt, more in zip(prompts, ids, strict=True)]
    texts = zip(tokenizer.decode(prompts), tokenizer.decode(wholes), strict=True)
    return [added_text(before, after) for before, after in texts]


def context_of(tokenizer: TextTokenizer, prompt: Sequence[int]) -> list[int]:
    """Return the last ids of a prompt, at most 64, that suffice to decode further tokens.

    Without preceding ids, a tokenizer may leave out the space before a word. So, if the prompt has
    such ids, the text of the returned ids is not empty and begins with a whole character.
    """
    prompt, size = prompt[-_MOST:], _LEAST
    while size < len(prompt):
        (text,) = tokenizer.decode([prompt[-size:]])
        if text and not text.startswith("\ufffd"):
            break
        # If each byte is a token, a character has up to four tokens.
        size = size + 1 if size < _LEAST + 4 else 2 * size
    return list(prompt[-size:])


class Pieces:
    """An incremental decoder of the tokens of a reply into pieces of text, up to a stop text.

    A piece is held back while it may be the beginning of a stop text or of a character. The time
    per token does not grow with the length of the reply.

    Args:
        tokenizer: The tokenizer.
        prompt: Token ids that the reply follows.
        stop: Texts that end the reply; they are not part of it. None: no texts.

    Attributes:
        ids: The last ids of prompt and reply: the context of the next token.
        stopped: Whether a stop text was found; further tokens are ignored.
        length: Number of characters of all tokens so far, a stop text included.
        whole: The same as `length`, without incomplete characters at the end.
    """

    def __init__(
        self, tokenizer: TextTokenizer, prompt: Sequence[int] = (), stop: Stops | None = None
    ):
        self._tokenizer, self._stop = tokenizer, stop or Stops()
        self.length, self.whole, self.stopped = 0, 0, False
        self._settled = 0  # number of final characters, which no further token changes
        self._matched: list[int] = []  # state of `Stops.search` after the final characters
        # `_known` is the last part of the text. `_given` counts the characters returned so far,
        # `_end` those before the end of the text or the beginning of a stop text.
        self._known, self._given, self._end = "", 0, 0
        self._settle(prompt)

    def _settle(self, ids):
        """Mark the text so far as final, and keep the last ids as context of later tokens."""
        self.ids = context_of(self._tokenizer, ids)
        self._num_settled = len(self.ids)
        (self._before,) = self._tokenizer.decode([self.ids])
        self._late = self._known[max(len(self._known) - self.length + self._given, 0) :]
        self._settled = self.length

    def add(self, token: int) -> str:
        """Add a token; return the text that is certain now, or "" if there is none."""
        if self.stopped:
            return ""
        self.ids.append(token)
        (after,) = self._tokenizer.decode([self.ids])
        new = added_text(self._before, after)
        size = len(self.ids) - self._num_settled
        sound = new if size >= _MOST else new.rstrip("\ufffd")
        self._known, self.length = self._late + new, self._settled + len(new)
        self.whole = max(self.whole, self._settled + len(sound))
        begin, matched = self._stop.search(self._matched, sound)
        self.stopped = begin is not None
        self._end = self.length if begin is None else self._settled + begin
        held = 0 if self.stopped else len(new) - len(sound) + max(matched, default=0)
        piece = self._until(self._end - held)
        if size >= _MOST or (size >= _LEAST and new and sound == new):
            self._matched = matched
            self._settle(self.ids if new else self.ids[:-size])  # some tokens have no text
        return piece

    def rest(self) -> str:
        """Return the text that is still held back; call it after the last token."""
        return self._until(self._end)

    def _until(self, end):
        """Return the text that was not returned yet, up to the character `end` of the reply."""
        begin, self._given = self._given, max(self._given, end)
        start = self.length - len(self._known)
        return self._known[max(begin - start, 0) : max(self._given - start, 0)]
