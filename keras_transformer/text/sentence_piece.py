"""`SentencePieceTokenizer`: training, encoding and decoding, with the ids of tensorflow-text."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import sentencepiece

from keras_transformer.config import require, require_whole
from keras_transformer.system.git_lfs import read_bytes
from keras_transformer.text.marian_tokenizer import tag_of
from keras_transformer.text.pieces import decoded, encoded, offsets
from keras_transformer.text.sentence_piece_training import (
    SENTINEL,
    SPECIAL_IDS,
    learn,
    pieces_of_symbols,
)
from keras_transformer.text.subword_sampling import SubwordSampler
from keras_transformer.text.tokenizer import (
    MAX_VOCAB_SIZE,
    Frame,
    Tokenizer,
    checked_texts,
    round_up,
)

KINDS = ("bpe", "unigram")


class SentencePieceTokenizer(Tokenizer):
    """Subword tokenizer with one or two SentencePiece models (Kudo and Richardson 2018).

    The model itself normalizes texts (NFKC; runs of spaces become one space), so that
    `tf_text.SentencepieceTokenizer(source_model, add_eos=True)` gives the same ids in a graph.
    Text that spells a special piece, such as "</s>", is encoded like any other text.

    With `target_languages`, one model translates into several languages. A tag before the source,
    such as ">>de<<", names the target language (Johnson et al. 2017, section 3); it is one piece.
    If `between` has chosen a language, its tag is added to each source; else each source must begin
    with a tag.

    The argument `sampling` of `encode_source` and `encode_target` depends on the kind. "bpe": the
    dropout of BPE-dropout (Provilkov et al. 2020, who use 0.1). "unigram": the smoothing alpha of
    unigram sampling (Kudo 2018, who uses 0.1 to 0.5; smaller is more random).

    Args:
        source_model: A serialized SentencePiece model with the pieces of padding, unknown text,
            BOS and EOS.
        target_model: The same for the target language, with the same special ids; None: both
            languages share `source_model`.
        kind: "bpe" or "unigram", the kind of the models; it selects the sampling method.
        source_languages: Codes of the languages to translate from, such as "en"; empty: any.
        target_languages: Codes of the languages to translate into, whose tags are pieces of the
            source model, see `train`; empty: one language, without a tag.

    Raises:
        ValueError: If a model cannot be read, lacks a special piece or a tag, the models have
            different special ids, or `kind` is unknown.
    """

    def __init__(
        self,
        source_model: bytes,
        target_model: bytes | None = None,
        *,
        kind: str = "bpe",
        source_languages: Sequence[str] = (),
        target_languages: Sequence[str] = (),
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
        self.source_languages = tuple(checked_texts(source_languages, "source_languages"))
        self.target_languages = tuple(checked_texts(target_languages, "target_languages"))
        self._tags = {x: self._source.processor.encode(tag_of(x)) for x in self.target_languages}
        for language, ids in self._tags.items():
            accepted = f"codes with a tag of their own as a piece, as {tag_of('de')} is of de"
            is_own = len(ids) == 1 and [*self._tags.values()].count(ids) == 1
            require(is_own, "target_languages", language, accepted)
        self._before: tuple[int, ...] = ()

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
        source_languages: Sequence[str] = (),
        target_languages: Sequence[str] = (),
        symbols: Sequence[str] = (),
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
            lowercase: Whether to convert all text to lower case (letter by letter: "ß" stays). The
                model's normalization does it, so decoded text is lower-case, too.
            character_coverage: Fraction of all characters in the texts that is covered by pieces
                of single characters, from 0.98 to 1; 0.9995 suits Chinese or Japanese.
            sentinels: Number of pieces in addition to `vocab_size` that mark spans and never occur
                in encoded text (Raffel et al. 2020, section 3.1.4); see `sentinel_ids`.
            source_languages, target_languages: See the class.
            symbols: Words that are always one piece of the source vocabulary, such as a tag "<BT>"
                of back-translations. These and the tags of languages are part of `vocab_size`.

        Raises:
            ValueError: If an argument is out of range, the texts have no characters, a symbol is
                not a word, or `vocab_size` is too small for the characters.
        """
        if not isinstance(vocab_size, int) or not 1 <= vocab_size <= MAX_VOCAB_SIZE:
            raise ValueError(
                f"vocab_size must be an integer from 1 to {MAX_VOCAB_SIZE:,}, got {vocab_size!r}"
            )
        if not 0.98 <= character_coverage <= 1:
            raise ValueError(f"character_coverage must be 0.98 to 1, got {character_coverage!r}")
        require_whole("sentinels", sentinels, 0)
        learned = functools.partial(
            learn,
            vocab_size=round_up(vocab_size),
            sentinels=sentinels,
            model_type=_checked_kind(kind),
            byte_fallback=byte_fallback,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            character_coverage=character_coverage,
        )
        words = [*map(tag_of, target_languages), *checked_texts(symbols, "symbols")]
        symbol_pieces = pieces_of_symbols(words, lowercase)
        source_texts = checked_texts(source_texts, "source_texts")
        target_texts = checked_texts(target_texts, "target_texts")
        if shared:
            name = "source_texts and target_texts"
            models = [
                learned(source_texts + target_texts, name, user_defined_symbols=symbol_pieces)
            ]
        else:
            models = [learned(source_texts, "source_texts", user_defined_symbols=symbol_pieces)]
            models.append(learned(target_texts, "target_texts"))
        return cls(
            *models,
            kind=kind,
            source_languages=source_languages,
            target_languages=target_languages,
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
        """Ids of the sentinel pieces, in order of their numbers; empty if there are none."""
        is_control, pieces = self._source.processor.is_control, self.pieces_of("source")
        return tuple(i for i, x in enumerate(pieces) if x.startswith(SENTINEL) and is_control(i))

    def pieces_of(self, language: str) -> list[str]:
        """Return the vocabulary of the "source" or the "target", in the order of ids."""
        processor = getattr(self, f"_{language}").processor
        return [processor.id_to_piece(i) for i in range(len(processor))]

    @property
    def source_frame(self) -> Frame:
        """The ids around a source text: the tag that `between` has chosen, if any, and EOS."""
        return Frame(self._before, (self.eos_id,))

    def _between(
        self, source_language: str | None, target_language: str | None
    ) -> SentencePieceTokenizer:
        if not self._tags:
            return self
        chosen = copy.copy(self)
        chosen._before = tuple(self._tags.get(target_language or "", ()))
        return chosen

    def encode_source(
        self, texts: Sequence[str], *, sampling: float = 0.0, seed: int | None = None
    ) -> list[list[int]]:
        """Encode source texts as ids, see `Tokenizer.encode_source`.

        Raises:
            ValueError: If there are `target_languages`, `between` has chosen none, and a text that
                is not empty does not begin with a tag; see also `Tokenizer.encode_source`.
        """
        texts = checked_texts(texts)
        rows = super().encode_source(texts, sampling=sampling, seed=seed)
        if self._before:
            return [[*self._before, *row] for row in rows]
        tags = [[], *self._tags.values()]
        for text, row in zip(texts, rows if self._tags else (), strict=False):
            if row[:1] not in tags and len(row) > 1:
                raise ValueError(
                    f"target_language must be one of {', '.join(self._tags)}, got none for "
                    f"{text!r:.60}; choose it with Translator.between"
                )
        return rows

    def _encode(
        self, side: _Model, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        try:
            if sampling:
                random = Random(seed).random
                return [[*side.sampler(text, sampling, random), self.eos_id] for text in texts]
            return encoded(side.processor, texts)
        except (RuntimeError, TypeError) as error:
            for text in texts:
                if any("\ud800" <= character <= "\udfff" for character in text):
                    raise ValueError(
                        f"texts must be valid Unicode, got a lone surrogate in {text!r:.80}"
                    ) from error
            raise

    def _decode(self, side: _Model, ids: list[list[int]]) -> list[str]:
        return decoded(side.processor, ids)

    def _spans(self, side: _Model, text: str) -> list[tuple[int, int]]:
        return offsets(side.processor, text)

    def _files(self) -> dict[str, bytes]:
        if self.shared:
            return {"shared.model": self.source_model}
        return {"source.model": self.source_model, "target.model": self.target_model}

    def _config(self) -> dict[str, Any]:
        languages = dict(
            source_languages=[*self.source_languages], target_languages=[*self.target_languages]
        )
        return {"kind": self.kind, **(languages if any(languages.values()) else {})}

    @classmethod
    def _load(cls, folder: Path, manifest: dict[str, Any]) -> SentencePieceTokenizer:
        names = ["shared.model"] if manifest["shared"] else ["source.model", "target.model"]
        for name in names:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no complete tokenizer: {name} is missing")
        models = (read_bytes(folder / name) for name in names)
        sides = ("source_languages", "target_languages")
        return cls(*models, kind=manifest["kind"], **{x: manifest.get(x, ()) for x in sides})


class _Model:
    """A SentencePiece model with its bytes, processor and sampler.

    Args:
        content: The serialized model.
        kind: "bpe" or "unigram".
        name: Name of the argument in error messages.
    """

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
    require(kind in KINDS, "kind", kind, f"one of {list(KINDS)}")
    return kind
