"""Texts as the pieces of a vocabulary: what the tokenizers of pretrained models are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence

import sentencepiece

from keras_transformer.system.extras import missing

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what SentencePiece writes for a space


def offsets(processor: sentencepiece.SentencePieceProcessor, text: str) -> list[tuple[int, int]]:
    """Where in a text each of its pieces stands; all pieces of one character stand where it is.

    Args:
        processor: cuts the text up.
        text: any text, before it is normalized.
    """
    found = processor.encode(text, return_type="offset_mapping")
    places = list(found["offsets"])
    # SentencePiece gives a character to its last byte, or the last of what it is normalized to.
    for i in range(len(places) - 2, -1, -1):
        is_empty = places[i][0] == places[i][1] == places[i + 1][0]
        if is_empty and found["pieces"][i] != SPACE:
            places[i] = places[i + 1]
    return places


class SentencePieces:
    """SentencePiece cuts a text up, a vocabulary of its own numbers the pieces.

    Text that looks like a piece of the vocabulary which SentencePiece does not know, such as
    "</s>", is spelled out, unless `symbols` matches it.

    Args:
        model: a serialized SentencePiece model.
        pieces: the vocabulary in the order of its ids.
        unk_id: the id of what the vocabulary lacks.
        symbols: regular expression of the pieces that stand in a text as they are, and cut it;
            "" for none. tensorflow-text must understand it, too (RE2).

    Raises:
        ValueError: if the model cannot be read.
    """

    def __init__(self, model: bytes, pieces: Sequence[str], unk_id: int, symbols: str = ""):
        self.model, self.pieces, self.unk_id, self.symbols = model, list(pieces), unk_id, symbols
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        self._symbols = re.compile(f"({symbols})", re.DOTALL) if symbols else None
        try:
            self.processor = sentencepiece.SentencePieceProcessor()
            self.processor.LoadFromSerializedProto(model)
        except (RuntimeError, TypeError) as error:
            raise ValueError("it must be the bytes of a SentencePiece model") from error

    def encode(self, text: str) -> list[int]:
        """Ids of a text, nothing before or after them."""
        ids: list[int] = []
        for i, segment in enumerate(self._segments(text)):
            pieces = [segment] if i % 2 else self._cut(segment)
            ids += [self.ids.get(piece, self.unk_id) for piece in pieces]
        return ids

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where in a text each of its ids stands."""
        found, begin = [], 0
        for i, segment in enumerate(self._segments(text)):
            places = [(0, len(segment))] if i % 2 else offsets(self.processor, segment)
            found += [(begin + start, begin + end) for start, end in places]
            begin += len(segment)
        return found

    def _segments(self, text):
        """Those at odd places are symbols."""
        return self._symbols.split(text) if self._symbols else [text]

    def _cut(self, text):
        try:
            return self.processor.encode(text, out_type=str)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"texts must be valid Unicode, got {text!r:.80}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without spaces at its ends."""
        text = self.processor.decode_pieces([self.pieces[i] for i in ids])
        return text.replace(SPACE, " ").strip()

    def surfaces(self) -> list[bytes]:
        """Return the bytes that each piece adds to a text, with `SPACE` for spaces."""
        found = [piece.encode() for piece in self.pieces]
        for i in range(len(self.processor)):
            piece = self.processor.id_to_piece(i)
            if self.processor.is_byte(i) and piece in self.ids:
                found[self.ids[piece]] = bytes([int(piece[1:-1], 16)])
            elif self.processor.is_control(i) and piece in self.ids:
                found[self.ids[piece]] = b""
        return found


class FastPieces:
    """The pieces of a `tokenizer.json`, by the library `tokenizers`.

    Args:
        content: of the file.

    Raises:
        ImportError: without `tokenizers`.
        ValueError: if it cannot be read.
    """

    def __init__(self, content: bytes):
        try:
            import tokenizers
        except ImportError as error:
            raise missing("a tokenizer.json without a SentencePiece model", "pretrained") from error
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except Exception as error:  # the library's own, without a class
            raise ValueError(f"tokenizer.json cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True  # as text: what looks so is spelled out
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values()) + 1
        self.pieces = [""] * size
        for piece, i in vocabulary.items():
            self.pieces[i] = piece
        self.ids = vocabulary

    def encode(self, text: str) -> list[int]:
        """Ids of a text, nothing before or after them."""
        try:
            return self._tokenizer.encode(text, add_special_tokens=False).ids
        except (UnicodeError, TypeError) as error:
            raise ValueError(f"texts must be valid Unicode, got {text!r:.80}") from error

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where in a text each of its ids stands."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without spaces at its ends."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True).strip()
