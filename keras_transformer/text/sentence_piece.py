"""SentencePiece tokenizers, with the same ids as tensorflow-text: train, encode, save, load."""

from __future__ import annotations

import functools
import io
import logging
import os
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece

from keras_transformer.config import require_whole
from keras_transformer.text.pieces import offsets
from keras_transformer.text.subword_sampling import SubwordSampler
from keras_transformer.text.tokenizer import MAX_VOCAB_SIZE, Tokenizer, checked_texts, round_up

KINDS = ("bpe", "unigram")
SPECIAL_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
# SentencePiece's error for a vocabulary too small for the characters, with the size required.
_TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
_SENTINEL = "<extra_id_"  # followed by a number, as in T5

logger = logging.getLogger(__name__)


class SentencePieceTokenizer(Tokenizer):
    """Subword tokenizer on SentencePiece models (Kudo and Richardson 2018).

    Text is normalized by the model itself (NFKC, runs of spaces become one), so that
    `tf_text.SentencepieceTokenizer(source_model, add_eos=True)` gives the same ids in a graph.
    Text that looks like a special piece, such as "</s>", is encoded like any other.

    Sampling is BPE-dropout (Provilkov et al. 2020; `sampling` is the dropout, the paper's 0.1)
    for "bpe" and unigram sampling (Kudo 2018; `sampling` is the smoothing alpha, the paper's 0.1
    to 0.5, smaller is more random) for "unigram".

    Args:
        source_model: A serialized SentencePiece model that has all four special pieces.
        target_model: Model of the target language, with the same special ids; None: shared.
        kind: "bpe" or "unigram"; selects the sampling method.

    Raises:
        ValueError: If a model cannot be read, lacks a special piece, or `kind` is unknown.
    """

    def __init__(
        self, source_model: bytes, target_model: bytes | None = None, *, kind: str = "bpe"
    ):
        self.kind = _checked_kind(kind)
        self.shared = target_model is None
        self._source = _Model(source_model, kind, "source_model")
        self._target = self._source
        if target_model is not None:
            self._target = _Model(target_model, kind, "target_model")
        ids, target_ids = self._source.special_ids, self._target.special_ids
        if ids != target_ids:
            raise ValueError(f"source_model and target_model differ: {ids} and {target_ids}")
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = ids.values()
        self.source_vocab_size = self._source.processor.get_piece_size()
        self.target_vocab_size = self._target.processor.get_piece_size()

    @classmethod
    def train(
        cls,
        source_texts: Iterable[str],
        target_texts: Iterable[str],
        *,
        vocab_size: int = 8000,
        kind: str = "bpe",
        shared: bool = True,
        byte_fallback: bool = True,
        lowercase: bool = False,
        character_coverage: float = 1.0,
        sentinels: int = 0,
    ) -> SentencePieceTokenizer:
        """Train a tokenizer; the same texts and arguments give the same bytes.

        Args:
            source_texts: Texts of the source language; any iterable.
            target_texts: Texts of the target language; any iterable.
            vocab_size: Number of pieces per vocabulary, rounded up to a multiple of 8. If the
                texts support fewer, the vocabulary is smaller (with a warning), and unused pieces
                fill it up to a multiple of 8.
            kind: "bpe" (Sennrich et al. 2016) or "unigram" (Kudo 2018).
            shared: Whether both languages share one vocabulary; else each has its own.
            byte_fallback: Whether characters without a piece are encoded as UTF-8 bytes, for
                which the vocabulary contains 256 pieces; else they become `unk_id`.
            lowercase: Whether to fold the case of all text (letter by letter: "ß" stays). This is
                part of the model's normalization; decoded text stays folded.
            character_coverage: Share of the texts' characters that get their own piece, 0.98 to
                1; 0.9995 suits Chinese or Japanese.
            sentinels: Number of pieces, in addition to `vocab_size`, that mark spans and never
                occur in encoded text (Raffel et al. 2020, section 3.1.4): `sentinel_ids`.

        Raises:
            ValueError: If an argument is out of range, the texts have no characters, or
                `vocab_size` is too small for the characters.
        """
        if not isinstance(vocab_size, int) or not 1 <= vocab_size <= MAX_VOCAB_SIZE:
            raise ValueError(
                f"vocab_size must be an integer from 1 to {MAX_VOCAB_SIZE:,}, got {vocab_size!r}"
            )
        if not 0.98 <= character_coverage <= 1:
            raise ValueError(f"character_coverage must be 0.98 to 1, got {character_coverage!r}")
        require_whole("sentinels", sentinels, 0)
        learn = functools.partial(
            _learn,
            vocab_size=round_up(vocab_size),
            sentinels=sentinels,
            model_type=_checked_kind(kind),
            byte_fallback=byte_fallback,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            character_coverage=character_coverage,
        )
        source_texts = checked_texts(source_texts, "source_texts")
        target_texts = checked_texts(target_texts, "target_texts")
        if shared:
            return cls(
                learn(source_texts + target_texts, "source_texts and target_texts"), kind=kind
            )
        return cls(
            learn(source_texts, "source_texts"), learn(target_texts, "target_texts"), kind=kind
        )

    @property
    def source_model(self) -> bytes:
        """The serialized SentencePiece model of the source language."""
        return self._source.content

    @property
    def target_model(self) -> bytes:
        """The serialized SentencePiece model of the target language."""
        return self._target.content

    @property
    def sentinel_ids(self) -> tuple[int, ...]:
        """Ids of the sentinel pieces, in order; empty if the tokenizer has none."""
        is_control, pieces = self._source.processor.is_control, self.pieces_of("source")
        return tuple(i for i, x in enumerate(pieces) if x.startswith(_SENTINEL) and is_control(i))

    def pieces_of(self, language: str) -> list[str]:
        """Return the vocabulary of the "source" or the "target", in the order of ids."""
        processor = getattr(self, f"_{language}").processor
        return [processor.id_to_piece(i) for i in range(len(processor))]

    def _encode(
        self, side: _Model, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        try:
            if sampling:
                random = Random(seed).random
                return [[*side.sampler(text, sampling, random), self.eos_id] for text in texts]
            # Each call starts new threads, which pays from about 1,000 texts per thread.
            threads = min(os.cpu_count() or 1, 1 + len(texts) // 1000)
            return side.processor.encode(texts, add_eos=True, num_threads=threads)
        except (RuntimeError, TypeError) as error:
            for text in texts:
                if any("\ud800" <= character <= "\udfff" for character in text):
                    raise ValueError(
                        f"texts must be valid Unicode, got a lone surrogate in {text!r:.80}"
                    ) from error
            raise

    def _decode(self, side: _Model, ids: list[list[int]]) -> list[str]:
        threads = min(os.cpu_count() or 1, 1 + len(ids) // 1000)
        return side.processor.decode(ids, num_threads=threads) if ids else []

    def _spans(self, side: _Model, text: str) -> list[tuple[int, int]]:
        return offsets(side.processor, text)

    def _files(self) -> dict[str, bytes]:
        if self.shared:
            return {"shared.model": self.source_model}
        return {"source.model": self.source_model, "target.model": self.target_model}

    def _config(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def _load(cls, folder: Path, manifest: dict[str, Any]) -> SentencePieceTokenizer:
        names = ["shared.model"] if manifest["shared"] else ["source.model", "target.model"]
        for name in names:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no complete tokenizer: {name} is missing")
        return cls(*((folder / name).read_bytes() for name in names), kind=manifest["kind"])


class _Model:
    """A SentencePiece model: its bytes, processor and sampler."""

    def __init__(self, content: bytes, kind: str, name: str):
        self.content = content
        self.kind = kind
        try:
            self.processor = sentencepiece.SentencePieceProcessor()
            self.processor.LoadFromSerializedProto(content)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{name} must be the bytes of a SentencePiece model") from error
        self.special_ids = {name: getattr(self.processor, name)() for name in SPECIAL_IDS}
        missing = [name for name, id_ in self.special_ids.items() if id_ < 0]
        if missing:
            raise ValueError(f"{name} must have all of {list(SPECIAL_IDS)}, it lacks {missing}")

    @functools.cached_property
    def sampler(self) -> SubwordSampler:
        return SubwordSampler(self.processor, self.kind)


def _checked_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {list(KINDS)}, got {kind!r}")
    return kind


def _learn(
    texts: Sequence[str], name: str, *, vocab_size: int, sentinels: int, **options: Any
) -> bytes:
    """Train a model of up to `vocab_size` pieces and the sentinels, filled to a multiple of 8."""
    if not any(text.strip() for text in texts):
        raise ValueError(f"{name} must hold some text to learn from, got {len(texts)} empty lines")
    content = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=content,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            # Sums over threads, and so the model, depend on the number of threads.
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
        logger.warning("%s support %d pieces only, not %d", name, pieces, vocab_size)
    pieces += sentinels
    unused = _control_pieces("<unused", round_up(pieces) - pieces)
    return content.getvalue() + _control_pieces(_SENTINEL, sentinels) + unused


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
