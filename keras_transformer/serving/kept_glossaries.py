"""Glossaries that clients of DeepL's API create, kept in memory, and perhaps in a folder."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from keras_transformer.config import require
from keras_transformer.serving.errors import Refusal, said
from keras_transformer.serving.schemas import with_forms
from keras_transformer.serving.waiting import TooLargeError
from keras_transformer.system.files import read_json, write_json

Pair = tuple[str, str]
MOST_CHARACTERS = 10_000_000  # of all glossaries: a few hundred megabytes of memory at most
MOST_OF_A_KEY = 1000  # maximum number of glossaries of an API key


@dataclass
class KeptGlossary:
    """A glossary: a name, and a dictionary of terms for each of its pairs of languages.

    Args:
        owner: Name of the API key that created it; others do not see it.
        name: Its name.
        dictionaries: For each pair of language codes, the terms with their translations.
        id: Its identifier.
        created: Time of its creation.
    """

    owner: str
    name: str
    dictionaries: dict[Pair, dict[str, str]]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat("T", "microseconds"))

    def size(self) -> int:
        """Return its number of characters; each term counts as 20 more."""
        terms = (pair for x in self.dictionaries.values() for pair in x.items())
        return len(self.name) + sum(len(x) + len(y) + 20 for x, y in terms)

    def facts(self) -> dict[str, Any]:
        """Return it as plain values, for a file."""
        rows = [
            dict(source_lang=source, target_lang=target, entries=terms)
            for (source, target), terms in self.dictionaries.items()
        ]
        names = ("owner", "name", "id", "created")
        return {x: getattr(self, x) for x in names} | {"dictionaries": rows}

    @classmethod
    def read(cls, path: Path) -> KeptGlossary:
        """Read a glossary from the file of its `facts`, which has its identifier as its name.

        Raises:
            ValueError: If the file is broken, or holds something else.
        """
        try:
            saved = _Saved.model_validate(read_json(path))
            for dictionary in saved.dictionaries:
                with_forms({**dictionary.entries})
        except ValidationError as error:
            raise ValueError(f"{path} is not a glossary: {said(error.errors())}") from error
        except ValueError as error:
            raise ValueError(f"{path} is not a glossary: {error}") from error
        require(saved.id == path.stem, f"id in {path}", saved.id, "the name of the file")
        terms = {(x.source_lang, x.target_lang): x.entries for x in saved.dictionaries}
        return cls(saved.owner, saved.name, terms, saved.id, saved.created)


class _Dictionary(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    source_lang: str
    target_lang: str
    entries: dict[str, str]


class _Saved(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    owner: str
    name: str
    id: str
    created: str
    dictionaries: list[_Dictionary]


class KeptGlossaries:
    """All glossaries of a server, each visible to the API key that created it.

    Args:
        folder: Folder with a file for each glossary, created if missing; other servers must not
            use it. None: glossaries are lost when the server ends.

    Raises:
        ValueError: If a file in the folder is not a glossary; names it.
    """

    def __init__(self, folder: Path | None = None):
        self._folder = folder
        glossaries = []
        if folder is not None:
            require(not folder.is_file(), "glossaries", str(folder), "a folder")
            folder.mkdir(parents=True, exist_ok=True)
            glossaries = [KeptGlossary.read(path) for path in folder.glob("*.json")]
        self._kept = {x.id: x for x in sorted(glossaries, key=lambda x: x.created)}

    def keep(self, glossary: KeptGlossary) -> None:
        """Keep a new glossary, or a changed one in place of the one with its id.

        Raises:
            TooLargeError: If there are too many glossaries, or too many characters in them.
        """
        others = [x for x in self._kept.values() if x.id != glossary.id]
        number = 1 + sum(x.owner == glossary.owner for x in others)
        size = glossary.size() + sum(x.size() for x in others)
        if number > MOST_OF_A_KEY or size > MOST_CHARACTERS:
            raise TooLargeError(
                f"there must be at most {MOST_OF_A_KEY} glossaries of a key, and {MOST_CHARACTERS} "
                f"characters in all glossaries, got {number} and {size}"
            )
        if self._folder is not None:
            write_json(self._folder / f"{glossary.id}.json", glossary.facts())
        self._kept[glossary.id] = glossary

    def of(self, owner: str) -> list[KeptGlossary]:
        """Return the glossaries of an API key, oldest first."""
        return [x for x in self._kept.values() if x.owner == owner]

    def find(self, owner: str, id: str) -> KeptGlossary:
        """Return a glossary.

        Raises:
            Refusal: 404 if this key has no glossary with this id.
        """
        glossary = self._kept.get(id)
        if glossary is None or glossary.owner != owner:
            raise Refusal(404, f"there is no glossary {id[:80]!r}")
        return glossary

    def drop(self, owner: str, id: str) -> None:
        """Delete a glossary.

        Raises:
            Refusal: 404 if this key has no glossary with this id.
        """
        glossary = self.find(owner, id)
        if self._folder is not None:
            (self._folder / f"{glossary.id}.json").unlink(missing_ok=True)
        del self._kept[glossary.id]
