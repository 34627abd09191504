"""Office documents: the texts of their paragraphs, and the same document with other texts.

Each differently formatted part of a text becomes an HTML element for the translation.
"""

from __future__ import annotations

import importlib
import io
import lzma
import posixpath
import re
import struct
import zipfile
import zlib

from lxml import etree

if __package__:
    from keras_transformer.serving.readers import paragraphs, text_places
else:  # run by `__main__`, without the package
    paragraphs, text_places = map(importlib.import_module, ("paragraphs", "text_places"))

MOST_UNPACKED = 200_000_000  # maximum bytes of all files in the archive
MOST_TAGS = 2_000_000  # maximum tags in all parts with text; each takes a few hundred bytes
TYPES = "[Content_Types].xml"
# Ends of the content types of the parts of Office Open XML that hold text.
_TEXT_TYPES = re.compile(
    r".*(wordprocessingml\.((document|template)\.main|header|footer|footnotes|endnotes|comments)"
    r"|ms-word\.(document|template)\.macroEnabled(Template)?\.main"
    r"|presentationml\.(slide|notesSlide|comments|slideMaster|slideLayout)"
    r"|ms-powerpoint\.comments|drawingml\.(chart|chartshapes|diagramData)"
    r"|ms-office\.(chartex|drawingml\.diagramDrawing))\+xml",
    re.IGNORECASE,
)
# Slide masters and layouts, and OpenDocument's styles, which hold its master pages.
_MASTER = re.compile(r".*(slideMaster|slideLayout)\+xml|.*styles\.xml", re.IGNORECASE)
# Types of relationships to parts that may hold text but are not read, and names for them.
_UNREAD = {
    "package": "embedded files",
    "oleObject": "embedded files",
    "aFChunk": "imported files",
    "glossaryDocument": "building blocks",
}
_PROPERTIES = ("title", "subject", "description", "keywords", "keyword")
# Exceptions raised for a damaged archive.
_BROKEN = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError),
    *(struct.error, zlib.error, lzma.LZMAError),
)


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Return the HTML of each text, with a numbered span for each differently formatted run.

    Returns:
        The texts, and the names of the parts of the document that hold text but are not translated.

    Raises:
        ValueError: If the content is not a document of this kind, or is too large.
    """
    document = _Document(content)
    return [text_places.marked(x) for x in document.texts()], sorted(document.left())


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the document with other texts: HTML with the spans that `read` returned."""
    document = _Document(content)
    for places, text in zip(document.texts(), texts, strict=True):
        text_places.fill(places, text)
    return document.closed()


class _Document:
    """An office document: the files of its archive, and the XML trees of those that hold text.

    Raises:
        ValueError: See `read`.
    """

    def __init__(self, content: bytes):
        self._parser = etree.XMLParser(resolve_entities=False, no_network=True)
        try:
            archive = zipfile.ZipFile(io.BytesIO(content))
            size = sum(member.file_size for member in archive.infolist())
            if size > MOST_UNPACKED:
                raise ValueError(f"file must be at most {MOST_UNPACKED} bytes unpacked, got {size}")
            self._members = {x: archive.read(x) for x in archive.infolist()}
            kinds = self._kinds()
            parts = {x: kinds[x.filename] for x in self._members if x.filename in kinds}
            tags = sum(self._members[x].count(b"<") for x in parts)
            if tags > MOST_TAGS:
                raise ValueError(f"file must have at most {MOST_TAGS} tags, got {tags}")
            self._trees = {x: self._tree(x) for x in parts}
        except (*_BROKEN, etree.XMLSyntaxError) as error:
            raise ValueError(f"file must be a document of its type: {error}") from error
        if not parts:
            raise ValueError("file must be a document of its type: it has no part with text")
        self._read = {
            x: paragraphs.Paragraphs(tree, bool(_MASTER.fullmatch(parts[x])))
            for x, tree in self._trees.items()
        }

    def _tree(self, member):
        return etree.fromstring(self._members[member], self._parser)

    def _kinds(self):
        """Map the name of each part with text to its content type; in OpenDocument, to its name."""
        names = {x.filename: x for x in self._members}
        if TYPES not in names:  # OpenDocument, whose parts have fixed names, also in its charts
            fixed = re.compile(r"(.*/)?(content|styles)\.xml")
            return {name: name for name in names if fixed.fullmatch(name)}
        known = {}
        defaults = {}
        for entry in self._tree(names[TYPES]):
            kind = entry.get("ContentType", "")
            known[entry.get("PartName", "").lower()] = kind
            defaults[entry.get("Extension", "").lower()] = kind
        kinds = {
            name: known.get(f"/{name}".lower(), defaults.get(name.rpartition(".")[2].lower(), ""))
            for name in names
        }
        return {name: kind for name, kind in kinds.items() if _TEXT_TYPES.fullmatch(kind)}

    def texts(self) -> list[list[text_places.Slot]]:
        """Return the slots of each text."""
        return [text for part in self._read.values() for text in part.texts]

    def left(self) -> set[str]:
        """Return names of the parts that are not translated."""
        names = {name for part in self._read.values() for name in part.left}
        for member, data in self._members.items():
            name = posixpath.basename(member.filename)
            if name.endswith(".rels"):
                kinds = re.findall(rb'\bType\s*=\s*["\'][^"\']*/(\w+)["\']', data)
                names |= {_UNREAD[kind.decode()] for kind in kinds if kind.decode() in _UNREAD}
            elif name == "manifest.xml" and b"oleobject" in data:
                names.add("embedded files")
            elif name in ("core.xml", "meta.xml") and self._has_properties(data):
                names.add("properties")
        return names

    def _has_properties(self, data):
        """Return whether a file of properties has any of `_PROPERTIES`."""
        try:
            tree = etree.fromstring(data, self._parser)
        except etree.XMLSyntaxError:
            return False
        return any(
            isinstance(x.tag, str) and etree.QName(x).localname in _PROPERTIES and x.text
            for x in tree.iter()
        )

    def closed(self) -> bytes:
        """Return the archive, with the changed parts."""
        for member in [x for x, read in self._read.items() if read.texts]:
            document = self._trees[member].getroottree()
            self._members[member] = etree.tostring(
                document, xml_declaration=True, encoding="UTF-8", standalone=True
            )
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in self._members.items():
                archive.writestr(member, data, member.compress_type)
        return out.getvalue()
