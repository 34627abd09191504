"""Marian's tokenizers: SentencePiece splits a text, and a vocabulary file gives the ids."""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.pieces import SentencePieces, cleaned
from keras_transformer.text.tokenizer import Frame, Tokenizer

PAD, UNK, EOS = "<pad>", "<unk>", "</s>"
TAG = r"^>>.*?<<"


def tag_of(language: str) -> str:
    """Return the tag of a target language: ">>de<<" for "de"."""
    return f">>{language}<<"


class MarianTokenizer(Tokenizer):
    """The tokenizer of OPUS-MT models, with the ids and texts of `transformers.MarianTokenizer`.

    A tag such as ">>fra<<" at the beginning of a source text becomes one token, which names the
    target language of a multilingual model; `between` adds it. The text "</s>" is encoded as plain
    text, whereas `transformers` would end the sequence.

    Args:
        source_model, target_model: Serialized SentencePiece models of the two languages.
        vocabulary: Id of each piece of the source language.
        target_vocabulary: Id of each piece of the target language. None: the same `vocabulary`.
        bos_id: Id that begins the decoder's input. None: the padding id.

    Attributes:
        clean_up: Whether spaces before punctuation are removed from decoded texts
            (`pieces.cleaned`).

    Raises:
        ValueError: If a model cannot be read, a vocabulary lacks a special piece, its ids are not
            0, 1, 2, ..., each exactly once, or the vocabularies differ in the id of "<unk>" or
            "</s>".
    """

    clean_up = False

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes,
        vocabulary: Mapping[str, int],
        target_vocabulary: Mapping[str, int] | None = None,
        bos_id: int | None = None,
    ):
        self.shared = target_vocabulary is None
        names = "vocabulary", "vocabulary" if self.shared else "target_vocabulary"
        target_ids = vocabulary if target_vocabulary is None else target_vocabulary
        self._source = _pieces(source_model, vocabulary, "source_model", names[0], TAG)
        self._target = _pieces(target_model, target_ids, "target_model", names[1])
        ids, other = (
            {name: side.ids[piece] for name, piece in _SPECIAL.items()}
            for side in (self._source, self._target)
        )
        # Padding ids may differ: the target's is used, since padding begins the decoder's input.
        if (ids["unk_id"], ids["eos_id"]) != (other["unk_id"], other["eos_id"]):
            raise ValueError(
                f"vocabulary and target_vocabulary must agree on special ids, got {ids} and {other}"
            )
        self.pad_id, self.unk_id, self.eos_id = other.values()
        self.bos_id = self.pad_id if bos_id is None else bos_id
        self.source_vocab_size = len(self._source.pieces)
        self.target_vocab_size = len(self._target.pieces)
        tags = [piece for piece in self._source.pieces if re.fullmatch(TAG, piece)]
        self.target_languages = tuple(tag[2:-2] for tag in tags)
        self._before: tuple[int, ...] = ()

    @property
    def source_frame(self) -> Frame:
        """The ids around a source text: the tag that `between` has chosen, if any, and EOS."""
        return Frame(self._before, (self.eos_id,))

    def _between(self, source_language: str | None, target_language: str | None) -> MarianTokenizer:
        chosen = copy.copy(self)
        tags = [tag_of(target_language)] if target_language in self.target_languages else []
        chosen._before = tuple(self._source.ids[tag] for tag in tags)
        return chosen

    @property
    def symbols(self) -> str:
        """Regular expression of the tag that a source text may begin with."""
        return self._source.symbols

    def side(self, language: str) -> SentencePieces:
        """Return the model and the vocabulary of a side: `language` is "source" or "target"."""
        return getattr(self, f"_{language}")

    @property
    def source_model(self) -> bytes:
        """The serialized SentencePiece model of the source language."""
        return self._source.model

    @property
    def target_model(self) -> bytes:
        """The serialized SentencePiece model of the target language."""
        return self._target.model

    def pieces_of(self, language: str) -> list[str]:
        """Return the vocabulary of "source" or "target" in the order of its ids."""
        return self.side(language).pieces

    def skipped_ids(self) -> set[int]:
        """Return the special ids, which decoding leaves out."""
        known = {self.pad_id, self.bos_id, self.eos_id}
        return known if self.unk_id is None else known | {self.unk_id}

    def _encode(
        self, side: SentencePieces, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        if sampling:
            raise ValueError(f"sampling must be 0 for a MarianTokenizer, got {sampling!r}")
        frame = self.source_frame if side is self._source else self.target_frame
        return [frame.around(side.encode(text)) for text in texts]

    def _decode(self, side: SentencePieces, ids: list[list[int]]) -> list[str]:
        texts = [side.decode([i for i in row if i != self.unk_id]) for row in ids]
        return [cleaned(text) for text in texts] if self.clean_up else texts

    def _spans(self, side: SentencePieces, text: str) -> list[tuple[int, int]]:
        return side.offsets(text)

    def _files(self) -> dict[str, bytes]:
        files = {"source.spm": self.source_model, "target.spm": self.target_model}
        files["vocab.json"] = _json(self._source.ids)
        if not self.shared:
            files["target_vocab.json"] = _json(self._target.ids)
        return files

    def _config(self) -> dict[str, Any]:
        return {"bos_id": self.bos_id} | ({"clean_up": True} if self.clean_up else {})

    @classmethod
    def _load(cls, folder: Path, manifest: Mapping[str, Any]) -> MarianTokenizer:
        tokenizer = cls.read(folder, manifest["shared"], manifest["bos_id"])
        tokenizer.clean_up = manifest.get("clean_up", False) is True
        return tokenizer

    @classmethod
    def read(
        cls, folder: str | os.PathLike, shared: bool | None = None, bos_id: int | None = None
    ) -> MarianTokenizer:
        """Read a tokenizer in Hugging Face's layout.

        Args:
            folder: Folder with `source.spm`, `target.spm`, `vocab.json` and, if vocabularies are
                separate, `target_vocab.json`.
            shared: Whether both languages share one vocabulary. None: the opposite of
                `separate_vocabs` in `tokenizer_config.json`; True if that is missing.
            bos_id: Id that begins the decoder's input. None: the padding id.

        Raises:
            FileNotFoundError: If a file is missing.
            ValueError: As for the class, or if a vocabulary is not a JSON object.
        """
        folder = Path(folder)
        if shared is None:
            path = folder / "tokenizer_config.json"
            shared = not (path.is_file() and read_json(path).get("separate_vocabs", False))
        names = ["source.spm", "target.spm", "vocab.json"]
        names += [] if shared else ["target_vocab.json"]
        for name in names:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no complete tokenizer: {name} is missing")
        source, target = (read_bytes(folder / name) for name in names[:2])
        vocabulary, *others = (read_json(folder / name) for name in names[2:])
        return cls(source, target, vocabulary, others[0] if others else None, bos_id)


_SPECIAL = {"pad_id": PAD, "unk_id": UNK, "eos_id": EOS}


def _pieces(
    model: bytes, ids: Mapping[str, int], model_name: str, ids_name: str, symbols: str = ""
) -> SentencePieces:
    """Return the pieces of a SentencePiece model with the ids of a vocabulary file."""
    ids = dict(ids) if isinstance(ids, Mapping) else {}
    if missing := [piece for piece in _SPECIAL.values() if piece not in ids]:
        raise ValueError(f"{ids_name} must have the pieces {missing}")
    pieces = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in pieces] != list(range(len(ids))):
        raise ValueError(f"{ids_name} must have each id from 0 to {len(ids) - 1} exactly once")
    try:
        return SentencePieces(model, pieces, ids[UNK], symbols)
    except ValueError as error:
        raise ValueError(f"{model_name} must be the bytes of a SentencePiece model") from error


def _json(ids: Mapping[str, int]) -> bytes:
    return json.dumps(ids, ensure_ascii=False, indent=2).encode()
