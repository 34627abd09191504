"""Schemas of the requests of DeepL's API, and terms in its formats."""

from __future__ import annotations

import csv
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from keras_transformer.config import require
from keras_transformer.serving.schemas import Language, Many, Text, with_forms

Formality = Literal["default", "more", "less", "prefer_more", "prefer_less"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DeeplTranslateRequest(_Model):
    """Texts to translate. `context` and the last four fields have no effect."""

    text: Annotated[Many[Text], BeforeValidator(lambda x: [x] if isinstance(x, str) else x)] = (
        Field(min_length=1, examples=[["The old man loves the dog."]])
    )
    target_lang: Language
    source_lang: Language | None = None
    formality: Formality = "default"
    glossary_id: str | None = None
    tag_handling: Literal["html"] | None = None
    split_sentences: Literal["1", "nonewlines"] | None = None
    show_billed_characters: bool = False
    context: str | None = None
    preserve_formatting: bool = False
    model_type: str | None = None
    outline_detection: bool = True
    tag_handling_version: str | None = None


class DocumentRequest(_Model):
    """The key of a document, which came with its identifier."""

    document_key: Annotated[str, Field(min_length=1, max_length=200)]


class DictionaryRequest(_Model):
    """A dictionary of a glossary: terms of a pair of languages, a line each."""

    source_lang: Language
    target_lang: Language
    entries: Text
    entries_format: Literal["tsv", "csv"] = "tsv"

    def terms(self) -> dict[str, str]:
        """Return the terms with their translations; columns after the second are left out.

        Raises:
            ValueError: If a line has no two columns or an empty one, a term is repeated, or there
                are no terms.
        """
        lines = [line for line in self.entries.splitlines() if line.strip()]
        rows = [line.split("\t") for line in lines]
        if self.entries_format == "csv":
            try:
                rows = [*csv.reader(lines)]
            except csv.Error as error:
                raise ValueError(f"entries must be CSV: {error}") from error
        terms: dict[str, str] = {}
        for number, row in enumerate(rows, 1):
            sides = [x.strip() for x in row[:2]]
            is_pair = len(sides) == 2 and all(sides) and sides[0] not in terms
            accepted = "a new term and its translation"
            require(is_pair, f"entry {number} of entries", f"{row!r:.80}", accepted)
            terms[sides[0]] = sides[1]
        require(bool(terms), "entries", self.entries, "one or more terms")
        with_forms({**terms})
        return terms


class GlossaryRequest(DictionaryRequest):
    """A glossary of one pair of languages."""

    name: Annotated[Text, Field(min_length=1, max_length=1000)]


class MultilingualRequest(_Model):
    """A glossary of any number of pairs of languages."""

    name: Annotated[Text, Field(min_length=1, max_length=1000)]
    dictionaries: list[DictionaryRequest] = Field(min_length=1, max_length=100)


class ChangeRequest(_Model):
    """A new name of a glossary, and terms to add to its dictionaries."""

    name: Annotated[Text, Field(min_length=1, max_length=1000)] | None = None
    dictionaries: list[DictionaryRequest] = Field(default_factory=list, max_length=100)
