"""Tokens of a reply as clients see them: text, bytes, offset and log-probability of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.language.added_text import Pieces, added_text, context_of
from keras_transformer.language.reply import Event
from keras_transformer.language.stops import Stops
from keras_transformer.text.text_tokenizer import TextTokenizer

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")  # a byte's piece in a SentencePiece model


@dataclass(frozen=True)
class Token:
    r"""A token of a reply.

    Attributes:
        id: Id of the token.
        text: The text that it adds to the reply, with its space; for a special token, its name; for
            a part of a character, "bytes:" and its bytes, such as "bytes:\xe2\x82".
        bytes: The bytes of its text in UTF-8; for a part of a character, that part's bytes.
        log_prob: Its log-probability.
        offset: Number of characters of the reply that precede it; 0 for a token in `top`.
        top: The most probable tokens at its position, if the request asks for them.
    """

    id: int
    text: str
    bytes: tuple[int, ...]
    log_prob: float
    offset: int = 0
    top: tuple[Token, ...] = ()


class TokenTexts:
    """Decoder of a model's tokens one by one; a token's text depends on the previous tokens.

    Args:
        tokenizer: The model's tokenizer.
    """

    def __init__(self, tokenizer: TextTokenizer):
        self._tokenizer = tokenizer
        pieces = tokenizer.pieces()
        self._special = {i: x for x, i in pieces.items() if i in tokenizer.added_ids}
        self._broken = dict(_broken(pieces, json.loads(tokenizer.content).get("decoder")))

    def pieces(self, prompt: Sequence[int], stop: Stops) -> Pieces:
        """Return the decoder of a new reply to a prompt, which ends before a stop text."""
        return Pieces(self._tokenizer, prompt, stop)

    def add(self, event: Event, pieces: Pieces) -> tuple[str, Token]:
        """Add the token of an event to a reply.

        Args:
            event: The next token of the reply, and the most probable ones at its position.
            pieces: The reply so far.

        Returns:
            The text that is certain now (see `Pieces.add`), and the token.
        """
        context, whole = context_of(self._tokenizer, pieces.ids), pieces.whole
        new_text = pieces.add(event.token)
        ids = [event.token, *(token for token, _ in event.top)]
        known, *texts = self._tokenizer.decode([context, *([*context, i] for i in ids)])
        token_text, *others = (added_text(known, text) for text in texts)
        offset = whole if event.token in self._broken else pieces.length - len(token_text)
        ranked = zip(event.top, others, strict=True)
        top = tuple(Token(i, *self._named(i, text), log_prob) for (i, log_prob), text in ranked)
        name, encoded = self._named(event.token, token_text)
        return new_text, Token(event.token, name, encoded, event.log_prob, offset, top)

    def _named(self, token: int, text: str) -> tuple[str, tuple[int, ...]]:
        """Return the name and the bytes of a token that adds `text`."""
        if raw := self._broken.get(token):
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw), tuple(raw)
        text = text or self._special.get(token, "")
        return text, tuple(text.encode())


def _broken(pieces: Mapping[str, int], decoder: Any) -> Iterator[tuple[int, bytes]]:
    """Yield (id, bytes) of each piece whose bytes are not complete characters.

    Args:
        pieces: All pieces and their ids.
        decoder: The field `decoder` of a `tokenizer.json`.
    """
    kinds = {x.get("type") for x in [decoder or {}, *(decoder or {}).get("decoders", [])]}
    table = _bytes_of_characters() if "ByteLevel" in kinds else {}
    for piece, i in pieces.items():
        if "ByteFallback" in kinds and (match := _BYTE.fullmatch(piece)):
            raw = bytes([int(match[1], 16)])
        elif table and all(x in table for x in piece):
            raw = bytes(table[x] for x in piece)
        else:
            continue
        try:
            raw.decode()
        except UnicodeDecodeError:
            yield i, raw


def _bytes_of_characters() -> dict[str, int]:
    """Return the byte that each character of a byte-level piece stands for, as in GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [x for x in range(256) if x not in plain]
    return {chr(x): x for x in plain} | {chr(256 + i): x for i, x in enumerate(others)}
