"""Glossaries that clients of DeepL's API create, kept in memory until the server ends."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.waiting import TooLargeError

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


class KeptGlossaries:
    """All glossaries of a server, each visible to the API key that created it."""

    def __init__(self):
        self._kept: dict[str, KeptGlossary] = {}

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
        del self._kept[self.find(owner, id).id]
