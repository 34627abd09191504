"""SentencePiece models of words: they split a text at its spaces."""

from __future__ import annotations

from collections.abc import Sequence

_UNKNOWN, _CONTROL = 2, 3  # types of pieces; others are normal
_WORD = 3  # the type of the model


def word_model(pieces: Sequence[str], unk: str, eos: str) -> bytes:
    """Return a serialized SentencePiece model that splits a text at white space only.

    Args:
        pieces: The pieces; those of words begin with SentencePiece's symbol for a space.
        unk: The piece of unknown words.
        eos: The piece of the end of a text.
    """
    types = {unk: _UNKNOWN, eos: _CONTROL}
    messages = []
    for piece in pieces:
        kind = _number(3, types[piece]) if piece in types else b""
        messages.append(_message(1, _message(1, piece.encode()) + kind))
    ids = _number(40, pieces.index(unk)) + _number(42, pieces.index(eos))
    # The ids of BOS and padding: -1, as a 64-bit number, means that there is no such piece.
    without = b"".join(_number(field, (1 << 64) - 1) for field in (41, 43))
    names = _message(45, unk.encode()) + _message(47, eos.encode())
    trainer = _number(3, _WORD) + ids + without + names
    return b"".join([*messages, _message(2, trainer), _normalizer()])


def is_word_model(model: bytes) -> bool:
    """Return whether `word_model` made a serialized SentencePiece model."""
    return model.endswith(_normalizer())


def _normalizer():
    """Return the field of the normalizer, which handles white space only, and has a unique name."""
    return _message(3, _message(1, b"words") + b"".join(_number(field, 1) for field in (3, 4, 5)))


def _varint(value):
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _message(field, content):
    return _varint(field << 3 | 2) + _varint(len(content)) + content
