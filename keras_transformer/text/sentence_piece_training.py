"""Training of SentencePiece models."""

from __future__ import annotations

import io
import re
import struct
import warnings
from collections.abc import Sequence
from typing import Any

import sentencepiece

from keras_transformer.config import require
from keras_transformer.text.pieces import SPACE
from keras_transformer.text.tokenizer import round_up

SPECIAL_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
SENTINEL = "<extra_id_"  # followed by a number, as in T5
# SentencePiece's error message if the vocabulary is too small for all characters; its last number
# is the smallest possible size.
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def pieces_of_symbols(words: Sequence[str], lowercase: bool) -> list[str]:
    """Return the pieces of words that must never be split: each word with `SPACE` before it.

    SentencePiece matches them in the normalized text, in which `SPACE` precedes each word.

    Args:
        words: The words.
        lowercase: Whether the normalized text is lower-case.

    Raises:
        ValueError: If a word contains white space.
    """
    for word in words:
        require(word.split() == [word], "symbols", word, "words without white space")
    return [*dict.fromkeys(SPACE + (x.lower() if lowercase else x) for x in words)]


def learn(
    texts: Sequence[str], name: str, *, vocab_size: int, sentinels: int, **options: Any
) -> bytes:
    """Train a SentencePiece model, and return it serialized.

    Args:
        texts: Training texts.
        name: Name of the argument `texts` in error messages.
        vocab_size: Maximum number of pieces, without sentinels. If the texts support fewer, a
            warning says so.
        sentinels: Number of sentinel pieces to append. Unused pieces then fill the vocabulary up
            to a multiple of 8.
        options: Further options of `SentencePieceTrainer.train`.

    Raises:
        ValueError: If the texts have no characters, or `vocab_size` is too small for them.
    """
    if not any(text.strip() for text in texts):
        raise ValueError(f"{name} must hold some text to learn from, got {len(texts)} empty lines")
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=content,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            # Rounding depends on the number of threads, and so would the model.
            num_threads=1,
            minloglevel=2,
            **{**SPECIAL_IDS, **options},
        )
    except RuntimeError as error:
        if least := _TOO_SMALL.search(str(error)):
            spelling = ", 256 bytes" if options["byte_fallback"] else ""
            raise ValueError(
                f"vocab_size must be at least {round_up(int(least[1]))} for {name}: "
                f"{len(SPECIAL_IDS)} special pieces{spelling} and a piece for each character; "
                f"got {vocab_size}"
            ) from error
        raise ValueError(
            f"{name} must hold characters to learn from; lines of more than 4,192 bytes do not "
            f"count. SentencePiece: {error}"
        ) from error
    pieces = sentencepiece.SentencePieceProcessor(model_proto=content.getvalue()).get_piece_size()
    if pieces < vocab_size:
        support = f"{name} support {pieces:,} pieces only, got vocab_size {vocab_size:,}"
        warnings.warn(support, stacklevel=2)
    pieces += sentinels
    unused = _control_pieces("<unused", round_up(pieces) - pieces)
    return content.getvalue() + _control_pieces(SENTINEL, sentinels) + unused


def _control_pieces(name: str, count: int) -> bytes:
    """Return serialized control pieces, to append to a serialized model.

    Serialized protocol buffers merge by concatenation, so this needs no protobuf library:
    field 1 of the model is a piece, whose fields are 1: text, 2: score, 3: type (3 is control).
    """
    appended = b""
    for index in range(count):
        text = f"{name}{index}>".encode()
        piece = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", 0) + b"\x18\x03"
        appended += b"\x0a" + bytes([len(piece)]) + piece
    return appended
