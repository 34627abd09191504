"""Splitting of text into the pieces of a vocabulary, for the tokenizers of pretrained models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sentencepiece

from keras_transformer.system.extras import missing
from keras_transformer.text.special_tokens import renamed
from keras_transformer.text.word_model import is_word_model

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's symbol for a space


# From this number of texts on, a call uses several threads. It starts new ones each time; on a busy
# machine, this takes milliseconds, longer than the encoding of one text.
THREADED = 1000
USER_DEFINED = 4  # the type of user-defined symbols in a serialized SentencePiece model


def symbols_of(model: bytes) -> frozenset[str]:
    """Return the user-defined symbols of a serialized SentencePiece model."""
    pieces = (dict(fields_of(value)) for number, value in fields_of(model) if number == 1)
    return frozenset(x[1].decode() for x in pieces if x.get(3) == USER_DEFINED)


def has_words(tokenizer: Any, words: Iterable[str]) -> bool:
    """Return whether each word is one piece of a tokenizer's source vocabulary."""
    try:
        return {SPACE + word for word in words} <= {*tokenizer.pieces_of("source")}
    except (AttributeError, ValueError):  # the tokenizer of an exported model lists no pieces
        return False


def fields_of(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a serialized protocol buffer."""
    place = 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        field, kind = divmod(number(), 8)
        if kind == 0:
            yield field, number()
            continue
        size = number() if kind == 2 else {1: 8, 5: 4}[kind]
        yield field, message[place : place + size]
        place += size


def encoded(
    processor: sentencepiece.SentencePieceProcessor, texts: Sequence[str]
) -> list[list[int]]:
    """Return the ids of each text, with EOS at the end.

    Args:
        processor: SentencePiece model.
        texts: Texts in valid Unicode; others raise RuntimeError or TypeError.
    """
    if len(texts) < THREADED:
        return [processor.encode(text, add_eos=True) for text in texts]
    return processor.encode(texts, add_eos=True, num_threads=_threads(texts))


def decoded(processor: sentencepiece.SentencePieceProcessor, ids: Sequence[list[int]]) -> list[str]:
    """Return the text of each list of ids.

    Args:
        processor: SentencePiece model.
        ids: Lists of ids of this model.
    """
    if len(ids) < THREADED:
        return [processor.decode(row) if row else "" for row in ids]
    return processor.decode(ids, num_threads=_threads(ids))


def _threads(texts):
    return min(os.cpu_count() or 1, 1 + len(texts) // THREADED)


def offsets(processor: sentencepiece.SentencePieceProcessor, text: str) -> list[tuple[int, int]]:
    """Return the start and end, in characters, of each piece of a text.

    If a character has several pieces, each gets its span.

    Args:
        processor: SentencePiece model that splits the text.
        text: Any text; the spans refer to it, not to its normalized form.
    """
    encoding = processor.encode(text, return_type="offset_mapping")
    places = list(encoding["offsets"])
    # If a character is spelled as bytes or normalized to several characters, SentencePiece gives
    # its span to the last of its pieces and empty spans to the others.
    for i in range(len(places) - 2, -1, -1):
        is_empty = places[i][0] == places[i][1] == places[i + 1][0]
        if is_empty and encoding["pieces"][i] != SPACE:
            places[i] = places[i + 1]
    return places


def cleaned(text: str) -> str:
    """Return a text without spaces before punctuation and contractions, as in `transformers`."""
    for piece in (" .", " ?", " !", " ,", " ' ", " n't", " 'm", " 's", " 've", " 're"):
        text = text.replace(piece, piece.strip())
    return text


class SentencePieces:
    """A SentencePiece model that splits texts, and a separate vocabulary of the pieces' ids.

    The vocabulary may have pieces that SentencePiece does not know, such as "</s>". In a text they
    are encoded as plain text, unless `symbols` matches them.

    Args:
        model: Serialized SentencePiece model.
        pieces: The vocabulary in the order of its ids.
        unk_id: Id of pieces that the vocabulary lacks.
        symbols: Regular expression of pieces that are found in a text before SentencePiece splits
            the rest; "" for none. It must be valid for tensorflow-text, too (RE2).

    Raises:
        ValueError: If the model cannot be read.
    """

    def __init__(self, model: bytes, pieces: Sequence[str], unk_id: int, symbols: str = ""):
        self.model, self.pieces, self.unk_id, self.symbols = model, list(pieces), unk_id, symbols
        self.ids = {piece: i for i, piece in enumerate(self.pieces)}
        self._symbols = re.compile(f"({symbols})", re.DOTALL) if symbols else None
        try:
            self.processor = sentencepiece.SentencePieceProcessor()
            self.processor.LoadFromSerializedProto(model)
        except (RuntimeError, TypeError) as error:
            raise ValueError("model must be the bytes of a SentencePiece model") from error
        self._is_of_words = is_word_model(model)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text without special ids; ValueError if it is not valid Unicode."""
        ids: list[int] = []
        for i, segment in enumerate(self._segments(text)):
            pieces = [segment] if i % 2 else self._cut(segment)
            ids += [self.ids.get(piece, self.unk_id) for piece in pieces]
        return ids

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end, in characters, of each id of a text."""
        spans, begin = [], 0
        for i, segment in enumerate(self._segments(text)):
            if self._is_of_words:
                places = [x.span() for x in re.finditer(r"\S+", segment)]
            else:
                places = [(0, len(segment))] if i % 2 else offsets(self.processor, segment)
            spans += [(begin + start, begin + end) for start, end in places]
            begin += len(segment)
        return spans

    def _segments(self, text):
        """Split a text at its symbols; the result has a symbol at each odd index."""
        return self._symbols.split(text) if self._symbols else [text]

    def _cut(self, text):
        if self._is_of_words:  # SentencePiece would merge neighbouring unknown words
            return [SPACE + word for word in text.split()]
        try:
            return self.processor.encode(text, out_type=str)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"texts must be valid Unicode, got {text!r:.80}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without white space at its ends."""
        text = self.processor.decode_pieces([self.pieces[i] for i in ids])
        return text.replace(SPACE, " ").strip()

    def surfaces(self) -> list[bytes]:
        """Return the bytes that each piece adds to a text when decoded; a space is `SPACE`."""
        surfaces = [piece.encode() for piece in self.pieces]
        for i in range(len(self.processor)):
            piece = self.processor.id_to_piece(i)
            if self.processor.is_byte(i) and piece in self.ids:
                surfaces[self.ids[piece]] = bytes([int(piece[1:-1], 16)])
            elif self.processor.is_control(i) and piece in self.ids:
                surfaces[self.ids[piece]] = b""
        return surfaces


class FastPieces:
    """The pieces of a `tokenizer.json`, read with the library `tokenizers`.

    Text that spells a special token is encoded as plain text.

    Args:
        content: Contents of the file.

    Raises:
        ImportError: If `tokenizers` is not installed.
        ValueError: If the content cannot be read.
    """

    def __init__(self, content: bytes):
        try:
            import tokenizers
        except ImportError as error:
            raise missing("a tokenizer.json without a SentencePiece model", "pretrained") from error
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
            self._encoder = tokenizers.Tokenizer.from_buffer(renamed(content)[0])
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"tokenizer.json cannot be read: {error}") from error
        self._encoder.no_padding()
        self._encoder.no_truncation()
        vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values()) + 1
        self.pieces = [""] * size
        for piece, i in vocabulary.items():
            self.pieces[i] = piece
        self.ids = vocabulary

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text without special ids; ValueError if it is not valid Unicode."""
        try:
            return self._encoder.encode(text, add_special_tokens=False).ids
        except (UnicodeError, TypeError) as error:
            raise ValueError(f"texts must be valid Unicode, got {text!r:.80}") from error

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end, in characters, of each id of a text."""
        return self._encoder.encode(text, add_special_tokens=False).offsets

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without white space at its ends."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True).strip()
