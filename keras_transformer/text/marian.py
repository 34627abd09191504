"""Marian's tokenizers: SentencePiece cuts a text up, a vocabulary of its own numbers the pieces."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from keras_transformer.files import read_json
from keras_transformer.text.base import Tokenizer

PAD, UNK, EOS = "<pad>", "<unk>", "</s>"
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what SentencePiece writes for a space


class MarianTokenizer(Tokenizer):
    """The tokenizer of OPUS-MT models, with the ids and texts of `transformers.MarianTokenizer`.

    A source that begins with a tag such as ">>fra<<" has it as its first token, by which a
    multilingual model knows what to translate into. Text that looks like "</s>" is spelled out,
    where `transformers` would end the sequence.

    Args:
        source_model, target_model: serialized SentencePiece models of the two languages.
        vocabulary: ids of the pieces.
        target_vocabulary: ids of the target's pieces; None: one vocabulary for both.

    Raises:
        ValueError: if a model cannot be read, or a vocabulary lacks a special piece, has an id
            twice, or has others than 0, 1, 2 ...
    """

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes,
        vocabulary: Mapping[str, int],
        target_vocabulary: Mapping[str, int] | None = None,
    ):
        self.shared = target_vocabulary is None
        self._source = _Side(source_model, vocabulary, "source_model", "vocabulary")
        self._target = _Side(
            target_model,
            vocabulary if target_vocabulary is None else target_vocabulary,
            "target_model",
            "vocabulary" if target_vocabulary is None else "target_vocabulary",
        )
        ids, other = (
            {name: side.ids[piece] for name, piece in _SPECIAL.items()}
            for side in (self._source, self._target)
        )
        # Padding begins the decoder's input, so that the target's is the one that counts.
        if (ids["unk_id"], ids["eos_id"]) != (other["unk_id"], other["eos_id"]):
            raise ValueError(f"vocabulary and target_vocabulary differ: {ids} and {other}")
        self.pad_id, self.unk_id, self.eos_id = other.values()
        self.bos_id = self.pad_id
        self.source_vocab_size = len(self._source.ids)
        self.target_vocab_size = len(self._target.ids)

    @property
    def source_model(self) -> bytes:
        """The serialized SentencePiece model of the source language."""
        return self._source.model

    @property
    def target_model(self) -> bytes:
        """The serialized SentencePiece model of the target language."""
        return self._target.model

    @property
    def source_pieces(self) -> list[str]:
        """The source vocabulary in the order of its ids."""
        return self._source.pieces

    @property
    def target_pieces(self) -> list[str]:
        """The target vocabulary in the order of its ids."""
        return self._target.pieces

    @property
    def tags(self) -> list[str]:
        """The tags that a source may begin with, such as ">>fra<<"."""
        return [piece for piece in self._source.pieces if _split_tag(piece) == (piece, "")]

    def _encode(
        self, side: _Side, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        if sampling:
            raise ValueError(f"sampling must be 0 for a MarianTokenizer, got {sampling!r}")
        return [[*side.encode(text), self.eos_id] for text in texts]

    def _decode(self, side: _Side, ids: list[list[int]]) -> list[str]:
        return [side.decode([i for i in row if i != self.unk_id]) for row in ids]

    def _files(self) -> dict[str, bytes]:
        files = {"source.spm": self.source_model, "target.spm": self.target_model}
        files["vocab.json"] = _json(self._source.ids)
        if not self.shared:
            files["target_vocab.json"] = _json(self._target.ids)
        return files

    def _config(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _load(cls, folder: Path, manifest: Mapping[str, Any]) -> MarianTokenizer:
        return cls.read(folder, shared=manifest["shared"])

    @classmethod
    def read(cls, folder: str | os.PathLike, shared: bool | None = None) -> MarianTokenizer:
        """Reads the files of a Hugging Face folder: two `.spm`, `vocab.json`, `target_vocab.json`.

        Args:
            folder: where they are.
            shared: whether there is one vocabulary; None: as `tokenizer_config.json` says.

        Raises:
            FileNotFoundError: if one is missing.
            ValueError: as the class; or if a vocabulary is no JSON object.
        """
        folder = Path(folder)
        if shared is None:
            path = folder / "tokenizer_config.json"
            shared = not (path.is_file() and read_json(path).get("separate_vocabs", False))
        names = ["source.spm", "target.spm", "vocab.json"]
        names += [] if shared else ["target_vocab.json"]
        for name in names:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no whole tokenizer: {name} is missing")
        models = [(folder / name).read_bytes() for name in names[:2]]
        return cls(*models, *(read_json(folder / name) for name in names[2:]))


_SPECIAL = {"pad_id": PAD, "unk_id": UNK, "eos_id": EOS}


class _Side:
    """A language: its SentencePiece model and the ids of its pieces."""

    def __init__(self, model: bytes, ids: Mapping[str, int], model_name: str, ids_name: str):
        self.model, self.ids = model, dict(ids) if isinstance(ids, Mapping) else {}
        try:
            self.processor = sentencepiece.SentencePieceProcessor()
            self.processor.LoadFromSerializedProto(model)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"{model_name} must be the bytes of a SentencePiece model") from error
        if missing := [piece for piece in _SPECIAL.values() if piece not in self.ids]:
            raise ValueError(f"{ids_name} must have the pieces {missing}")
        self.pieces = sorted(self.ids, key=self.ids.get)
        if [self.ids[piece] for piece in self.pieces] != list(range(len(self.ids))):
            raise ValueError(f"{ids_name} must have each id from 0 to {len(self.ids) - 1} once")

    def encode(self, text: str) -> list[int]:
        tag, text = _split_tag(text)
        try:
            pieces = self.processor.encode(text, out_type=str)
        except (RuntimeError, TypeError) as error:
            raise ValueError(f"texts must be valid Unicode, got {text!r:.80}") from error
        pieces = [tag, *pieces] if tag else pieces
        unknown = self.ids[UNK]
        return [self.ids.get(piece, unknown) for piece in pieces]

    def decode(self, ids: Sequence[int]) -> str:
        pieces = [self.pieces[i] for i in ids]
        return self.processor.decode_pieces(pieces).replace(SPACE, " ").strip()


def _split_tag(text: str) -> tuple[str, str]:
    """A tag at the beginning, "" if there is none, and the rest."""
    end = text.find("<<") + 2 if text.startswith(">>") else 0
    return (text[:end], text[end:]) if end > 1 else ("", text)


def _json(ids: Mapping[str, int]) -> bytes:
    return json.dumps(ids, ensure_ascii=False, indent=2).encode()
