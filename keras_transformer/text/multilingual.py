"""Tokenizers of pretrained encoder-decoders: M2M-100, SMaLL-100, NLLB, mBART, T5, BART."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from keras_transformer.text.pieces import FastPieces, SentencePieces, cleaned
from keras_transformer.text.tokenizer import Frame, Tokenizer

STYLES = ("prefix", "suffix", "source", "start", "task", "plain")
ORIGINALS = "hugging_face"  # folder of the files that a tokenizer was read from


class MultilingualTokenizer(Tokenizer):
    """One vocabulary for many languages, with a token or a text that names the language.

    The ids are those of `transformers`, with two exceptions. White space at the end of a text gets
    no token, as in SentencePiece, with which the models were trained; some tokenizers of
    `transformers` have one. Text that looks like a special token is encoded as plain text.

    Args:
        pieces: The vocabulary, with the method that splits texts into its pieces.
        style: Position of the language. "prefix": `[language] X </s>` on both sides; "suffix":
            `X </s> [language]` in the source, as "prefix" in the target; "start": the same in the
            source, and in the target the language is `bos_id`, so there is one; "source": the
            target's language in the source, `[language] X </s>`, and none in the target; "task": a
            text that precedes the source; "plain": `<s> X </s>` on both sides, without a language.
        pad_id, unk_id, bos_id, eos_id: Special ids; the decoder's input begins with `bos_id`.
        content_size: Ids from this number on are not text.
        languages: Ids of the language tokens, for all styles but "task" and "plain".
        tasks: Texts that precede the source, by target language, for the style "task".
        first_id: Id of `<s>`, for the style "plain".
        originals: Contents of the files that it was read from, by name, to be saved again.
        model: The fields of the model's `config.json` that it was read with.

    Attributes:
        clean_up: Whether decoded texts lose the spaces before marks (`pieces.cleaned`).
    """

    shared, clean_up = True, False

    def __init__(
        self,
        pieces: SentencePieces | FastPieces,
        *,
        style: str,
        pad_id: int,
        unk_id: int,
        bos_id: int,
        eos_id: int,
        content_size: int,
        languages: Mapping[str, int] | None = None,
        tasks: Mapping[str, str] | None = None,
        first_id: int | None = None,
        originals: Mapping[str, bytes] | None = None,
        model: Mapping[str, Any] | None = None,
    ):
        if style not in STYLES:
            raise ValueError(f"style must be one of {STYLES}, got {style!r}")
        self.pieces, self.style = pieces, style
        self.originals, self.model = dict(originals or {}), dict(model or {})
        self.pad_id, self.unk_id, self.bos_id, self.eos_id = pad_id, unk_id, bos_id, eos_id
        self.content_size = content_size
        self.languages, self.tasks = dict(languages or {}), dict(tasks or {})
        self.first_id = first_id
        self.source_vocab_size = self.target_vocab_size = len(pieces.pieces)
        self.source_languages = () if style == "source" else tuple(self.languages)
        self.target_languages = tuple(self.tasks if style == "task" else self.languages)
        if style == "start":
            self.target_languages = tuple(x for x, i in self.languages.items() if i == bos_id)
        self._source, self._target = "source", "target"
        self._chosen: tuple[str | None, str | None] = None, None

    @property
    def symbols(self) -> str:
        """Regular expression of the pieces that are matched literally in a text; "" for none."""
        return getattr(self.pieces, "symbols", "")

    def side(self, language: str) -> SentencePieces | FastPieces:
        """Return the pieces of "source" or "target", which are the same."""
        return self.pieces

    @property
    def source_frame(self) -> Frame:
        """The source's language, or the task, or `<s>`, and EOS."""
        if self.style == "source":
            return self._frame("target", False)
        if self.style != "task":
            return self._frame("source", self.style in ("suffix", "start"))
        task = self.tasks.get(self._chosen[1] or "", "")
        own = self.pieces.ids.get(task)
        before = self.pieces.encode(task) if own is None else [own]
        return Frame(tuple(before), (self.eos_id,))

    @property
    def target_frame(self) -> Frame:
        """The target's language, or `<s>`, and EOS."""
        if self.style in ("source", "start", "task"):
            return Frame((), (self.eos_id,))
        return self._frame("target", False)

    def _frame(self, side, is_suffix):
        if self.first_id is not None:
            return Frame((self.first_id,), (self.eos_id,))
        language = self._chosen[side == "target"]
        if language is None:
            raise ValueError(
                f"{side}_language must be chosen among this model's {len(self.languages)}, such "
                f"as {', '.join(list(self.languages)[:8])}; use Translator.between"
            )
        token = self.languages[language]
        if is_suffix:
            return Frame((), (self.eos_id, token))
        return Frame((token,), (self.eos_id,))

    def _between(
        self, source_language: str | None, target_language: str | None
    ) -> MultilingualTokenizer:
        chosen = copy.copy(self)
        chosen._chosen = source_language, target_language
        return chosen

    def _encode(
        self, side: str, texts: list[str], sampling: float, seed: int | None
    ) -> list[list[int]]:
        if sampling:
            raise ValueError(f"sampling must be 0 for a pretrained tokenizer, got {sampling!r}")
        frame = self.source_frame if side == "source" else self.target_frame
        return [frame.around(self.pieces.encode(text)) for text in texts]

    @property
    def source_model(self) -> bytes:
        """The serialized SentencePiece model of all languages; ValueError if there is none."""
        if isinstance(self.pieces, FastPieces):
            raise ValueError(
                "the tokenizer has no SentencePiece model, only a tokenizer.json or vocab.json"
            )
        return self.pieces.model

    target_model = source_model

    def pieces_of(self, language: str) -> list[str]:
        """Return the vocabulary in the order of its ids."""
        return self.pieces.pieces

    def skipped_ids(self) -> set[int]:
        """Return the ids that are not text."""
        special = {self.pad_id, self.bos_id, self.eos_id}
        special |= set() if self.unk_id is None else {self.unk_id}
        return special.union(range(self.content_size, len(self.pieces.pieces)))

    def _decode(self, side: str, ids: list[list[int]]) -> list[str]:
        skipped = self.skipped_ids()
        texts = [self.pieces.decode([i for i in row if i not in skipped]) for row in ids]
        return [cleaned(text) for text in texts] if self.clean_up else texts

    def _spans(self, side: str, text: str) -> list[tuple[int, int]]:
        return self.pieces.offsets(text)

    def _files(self) -> dict[str, bytes]:
        return {f"{ORIGINALS}/{name}": content for name, content in self.originals.items()}

    def _config(self) -> dict[str, Any]:
        return {"model": self.model}
