"""`KerasHubTokenizer`, an adapter for the tokenizers of keras-hub."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from keras_transformer.system.extras import missing
from keras_transformer.text.tokenizer import Tokenizer, round_up

# Names of the special tokens in published vocabularies, in the order in which they are looked up.
_TOKENS = {
    "pad_id": ("<pad>", "[PAD]"),
    "unk_id": ("<unk>", "[UNK]"),
    "bos_id": ("<s>", "<bos>", "[BOS]", "[START]", "[CLS]"),
    "eos_id": ("</s>", "<eos>", "[EOS]", "[END]", "[SEP]", "<|endoftext|>"),
}


class KerasHubTokenizer(Tokenizer):
    """A keras-hub tokenizer (SentencePiece, byte-pair, WordPiece, ...) with the special ids added.

    A special id that is None is looked up in the vocabulary: `pad_id` as "<pad>" or "[PAD]", and so
    on. An id beyond the vocabulary enlarges it.

    Args:
        tokenizer: Object with `tokenize`, `detokenize`, `vocabulary_size`, `token_to_id` and
            `id_to_token`, like every `keras_hub.tokenizers.Tokenizer` with a vocabulary. Special
            tokens that it adds to texts are removed.
        target: Tokenizer of the target language. None: `tokenizer` for both languages.
        pad_id: Padding id.
        unk_id: Id of unknown text; the only one that the vocabulary may lack.
        bos_id: Id that begins the decoder's input.
        eos_id: Id that ends every sequence.

    Raises:
        ValueError: If an id other than `unk_id` is neither given nor in the vocabulary, an id is
            negative, two of padding, BOS and EOS are equal, or the two vocabularies have different
            ids for a special token that is not given.
    """

    def __init__(
        self,
        tokenizer: Any,
        target: Any = None,
        *,
        pad_id: int | None = None,
        unk_id: int | None = None,
        bos_id: int | None = None,
        eos_id: int | None = None,
    ):
        self.shared = target is None
        self._source, self._target = tokenizer, tokenizer if target is None else target
        options = {"pad_id": pad_id, "unk_id": unk_id, "bos_id": bos_id, "eos_id": eos_id}
        ids: dict[str, Any] = {name: self._special_id(name, id_) for name, id_ in options.items()}
        self.unk_id = ids["unk_id"]
        self.pad_id, self.bos_id, self.eos_id = (ids[x] for x in ("pad_id", "bos_id", "eos_id"))
        needed = [self.pad_id, self.bos_id, self.eos_id]
        if len(set(needed)) < len(needed):
            raise ValueError(f"pad_id, bos_id and eos_id must differ, got {needed}")
        highest = max(id_ for id_ in ids.values() if id_ is not None)
        self.source_vocab_size = round_up(max(self._source.vocabulary_size(), highest + 1))
        self.target_vocab_size = round_up(max(self._target.vocabulary_size(), highest + 1))

    @property
    def source_model(self) -> bytes:
        """The serialized SentencePiece model of the source; ValueError if there is none."""
        return _sentence_piece_model(self._source)

    @property
    def target_model(self) -> bytes:
        """The serialized SentencePiece model of the target; ValueError if there is none."""
        return _sentence_piece_model(self._target)

    def _special_id(self, name: str, token_id: int | None) -> int | None:
        """Return a special id: `token_id`, or if None, the id of a token in the vocabulary."""
        if token_id is not None:
            if token_id < 0:
                raise ValueError(f"{name} must not be negative, got {token_id}")
            return token_id
        ids = {_find(tokenizer, _TOKENS[name]) for tokenizer in (self._source, self._target)}
        if len(ids) > 1:
            raise ValueError(f"{name} differs in the two vocabularies: {ids}; pass {name}")
        (id_,) = ids
        if id_ is None and name != "unk_id":
            raise ValueError(f"{name} must be given: the vocabulary has none of {_TOKENS[name]}")
        return id_

    def _encode(
        self, side: Any, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        if sampling:
            raise ValueError(f"sampling must be 0 for a keras-hub tokenizer, got {sampling!r}")
        special = (self.pad_id, self.bos_id, self.eos_id)
        rows = side.tokenize(texts) if texts else []
        rows = rows.to_list() if hasattr(rows, "to_list") else rows
        return [[*(int(i) for i in row if i not in special), self.eos_id] for row in rows]

    def _decode(self, side: Any, ids: list[list[int]]) -> list[str]:
        # The vocabulary may have been enlarged: the tokenizer itself does not know these ids.
        known = [[id_ for id_ in row if id_ < side.vocabulary_size()] for row in ids]
        return [side.detokenize(row) if row else "" for row in known]

    def _files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer's assets, by relative path."""
        sides = {"shared": self._source}
        if not self.shared:
            sides = {"source": self._source, "target": self._target}
        files = {}
        for name, side in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                side.save_assets(folder)
                for path in sorted(Path(folder).rglob("*")):
                    if path.is_file():
                        files[f"{name}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
        return files

    def _config(self) -> dict[str, Any]:
        sides = [self._source] if self.shared else [self._source, self._target]
        ids = {name: getattr(self, name) for name in _TOKENS}
        configs = [_keras_saving().serialize_keras_object(side) for side in sides]
        for config in configs:
            # A layer's name depends on a counter of the process, and has no effect on the ids.
            config["config"].pop("name", None)
        return {**ids, "tokenizers": configs}

    @classmethod
    def _load(cls, folder: Path, manifest: dict[str, Any]) -> KerasHubTokenizer:
        names = ["shared"] if manifest["shared"] else ["source", "target"]
        sides = []
        for name, config in zip(names, manifest["tokenizers"], strict=True):
            if not (folder / name).is_dir():
                raise FileNotFoundError(f"{folder} holds no complete tokenizer: {name} is missing")
            sides.append(_keras_saving().deserialize_keras_object(config))
            sides[-1].load_assets(os.fspath(folder / name))
        return cls(*sides, **{name: manifest[name] for name in _TOKENS})


def _keras_saving() -> Any:
    """Return `keras.saving` after the (slow) import of keras-hub, which registers its classes."""
    try:
        import keras_hub  # noqa: F401
    except ImportError as error:
        raise missing("a keras-hub tokenizer", "hub") from error
    import keras

    return keras.saving


def _find(tokenizer: Any, tokens: tuple[str, ...]) -> int | None:
    """Return the id of the first of `tokens` that is in the vocabulary; None if none is."""
    for token in tokens:
        try:
            id_ = int(tokenizer.token_to_id(token))
            # Some tokenizers return the unknown id for a missing token.
            if tokenizer.id_to_token(id_) == token:
                return id_
        except (KeyError, ValueError):
            continue
    return None


def _sentence_piece_model(tokenizer: Any) -> bytes:
    content = getattr(tokenizer, "proto", None)
    if not isinstance(content, bytes):
        raise ValueError(f"a {type(tokenizer).__name__} has no SentencePiece model")
    return content
