"""Tokenizers of pretrained encoder-decoders, such as M2M-100, NLLB, mBART, T5, BART, T5Gemma."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from keras_transformer.text.pieces import FastPieces, SentencePieces, cleaned
from keras_transformer.text.tokenizer import Frame, Tokenizer

STYLES = ("prefix", "suffix", "source", "start", "task", "plain", "begun")
ORIGINALS = "hugging_face"  # folder of the files that a tokenizer was read from


class MultilingualTokenizer(Tokenizer):
    """One vocabulary for many languages, with a token or a text that names the language.

    The ids are those of `transformers`, with two exceptions. White space at the end of a text gets
    no token, as in SentencePiece, which the models were trained with; some tokenizers of
    `transformers` add one. Text that spells a special token is encoded as plain text.

    The style is the way to name the languages. X is a text, S the token of the source language, T
    that of the target language:

    - "prefix": source `S X </s>`, target `T X </s>`;
    - "suffix": source `X </s> S`, target `T X </s>`;
    - "start": source `X </s> S`, target `X </s>`; T is `bos_id`, so there is one target language;
    - "source": source `T X </s>`, target `X </s>`;
    - "task": source `X </s>` after a text that names the task, target `X </s>`;
    - "plain": `<s> X </s>` on both sides, without a language;
    - "begun": source `<s> X`, target `X </s>`, without a language.

    Args:
        pieces: The vocabulary, with the method that splits texts into its pieces.
        style: One of `STYLES`, see above.
        pad_id, unk_id, bos_id, eos_id: Special ids; the decoder's input begins with `bos_id`.
        content_size: First id of the special and unused ids at the end of the vocabulary, which
            decoding leaves out.
        languages: Id of each language's token, by code; None for the last three styles.
        tasks: Text before the source for each target language, for the style "task".
        first_id: Id of `<s>`, for the styles "plain" and "begun"; None: there is none.
        originals: Contents of the files that the tokenizer was read from, by name; `save` writes
            them.
        model: The fields of the model's `config.json` that are needed to read these files.

    Attributes:
        clean_up: Whether spaces before punctuation are removed from decoded texts
            (`pieces.cleaned`).

    Raises:
        ValueError: If the style is unknown.
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
        """Regular expression of pieces found in a text before it is split; "" if there are none."""
        return getattr(self.pieces, "symbols", "")

    def side(self, language: str) -> SentencePieces | FastPieces:
        """Return the model and the vocabulary, which are the same for "source" and "target"."""
        return self.pieces

    @property
    def source_frame(self) -> Frame:
        """The ids around a source text: those of language, task or `<s>`, and EOS."""
        if self.style == "source":
            return self._frame("target", False)
        if self.style == "begun":
            return Frame(() if self.first_id is None else (self.first_id,), ())
        if self.style != "task":
            return self._frame("source", self.style in ("suffix", "start"))
        task = self.tasks.get(self._chosen[1] or "", "")
        task_id = self.pieces.ids.get(task)
        before = self.pieces.encode(task) if task_id is None else [task_id]
        return Frame(tuple(before), (self.eos_id,))

    @property
    def target_frame(self) -> Frame:
        """The ids around a target text: those of the language or `<s>`, if any, and EOS."""
        if self.style in ("source", "start", "task", "begun"):
            return Frame((), (self.eos_id,))
        return self._frame("target", False)

    def _frame(self, side, is_suffix):
        """Return the ids around a text of one side, with the token of its language."""
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
        """Return the special and unused ids, which decoding leaves out."""
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
