"""Reader of translation memories in TMX 1.4b, with a streaming XML parser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO
from xml.parsers import expat


def read_tmx(file: BinaryIO, path: str | Path, *languages: str) -> list[tuple[str, ...]]:
    """Return the texts, in the order of `languages`, of each unit that has all these languages.

    Args:
        file: File open for reading in binary mode.
        path: Name of the file in error messages.
        languages: Language codes, one or more; "en" also matches "en-GB".

    Raises:
        ValueError: If the XML is malformed or declares an entity (the message names the line), or
            no unit has all languages.
    """
    handlers = _Handlers(languages)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.data
    parser.EntityDeclHandler = handlers.refuse_entity
    parser.SkippedEntityHandler = handlers.refuse_entity
    try:
        parser.ParseFile(file)
    except (expat.ExpatError, ValueError, LookupError) as error:
        line = parser.CurrentLineNumber
        raise ValueError(f"{path}, line {line}: malformed TMX ({error})") from error
    if not handlers.pairs:
        raise ValueError(
            f"{path}: no translation unit has {'both ' if len(languages) > 1 else ''}"
            f"{' and '.join(map(repr, languages))}; "
            f"languages in the file: {sorted(handlers.languages) or 'none'}"
        )
    return handlers.pairs


class _Handlers:
    """A collector of the texts of units from the events of an XML parser (TMX 1.4b)."""

    def __init__(self, languages: tuple[str, ...]):
        self.wanted = languages
        self.languages: set[str] = set()  # all languages of the file
        self.pairs: list[tuple[str, ...]] = []
        self.unit: dict[str, str] = {}  # texts of the current unit, by language
        self.language = ""
        self.text: list[str] | None = None  # None outside <seg>
        self.codes = 0  # depth of inline elements other than <hi>; their content is no text

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self.unit = {}
        elif tag == "tuv":
            self.language = attributes.get("xml:lang", attributes.get("lang", ""))
            self.languages.add(self.language)
        elif tag == "seg":
            self.text, self.codes = [], 0
        elif self.text is not None and tag != "hi":
            self.codes += 1

    def data(self, text: str) -> None:
        if self.text is not None and not self.codes:
            self.text.append(text)

    def end(self, tag: str) -> None:
        if tag == "tu":
            texts = [x for x in map(self.find, self.wanted) if x is not None]
            if len(texts) == len(self.wanted):
                self.pairs.append(tuple(texts))
        elif tag == "seg" and self.text is not None:
            self.unit.setdefault(self.language, "".join(self.text))
            self.text = None
        elif self.text is not None and tag != "hi":
            self.codes -= 1

    def find(self, wanted: str) -> str | None:
        for language, text in self.unit.items():
            if f"{language}-".lower().replace("_", "-").startswith(f"{wanted}-".lower()):
                return text
        return None

    def refuse_entity(self, name: str, *_: Any) -> None:
        # A declared entity can expand a small file to gigabytes, or include another file.
        raise ValueError(f"entity {name!r}: only the five predefined entities of XML are read")
