"""Office documents: the texts of their paragraphs, and the same document with other texts.

Each differently formatted part of a paragraph becomes an HTML element for the translation.
"""

from __future__ import annotations

import html
import io
import lzma
import re
import struct
import zipfile
import zlib
from typing import Any

from lxml import etree

MOST_UNPACKED = 200_000_000  # bytes
MOST_TAGS = 2_000_000  # a tag takes up to some hundred bytes of memory
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_ODF = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_PARAGRAPHS = {f"{{{_WORD}}}p", f"{{{_DRAWING}}}p", f"{{{_ODF}}}p", f"{{{_ODF}}}h"}
_TEXTS = (f"{{{_WORD}}}t", f"{{{_DRAWING}}}t", f"{{{_ODF}}}*")
_TEXT_PARTS = re.compile(
    r"content\.xml|word/(document|footnotes|endnotes|header\d*|footer\d*)\.xml"
    r"|ppt/slides/slide\d+\.xml"
)
# Exceptions raised for a damaged archive.
_BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError)
_BROKEN += (struct.error, zlib.error, lzma.LZMAError)
_PARTS = re.compile(r'<span id="(\d+)">(.*?)</span>|([^<]+)', re.DOTALL)


def texts(content: bytes) -> list[str]:
    """Return the HTML of each paragraph, with a numbered span for each of its parts.

    Raises:
        ValueError: If the content is no document of this kind, or too large.
    """
    _, trees = _opened(content)
    return [
        "".join(f'<span id="{i}">{html.escape(x.text)}</span>' for i, x in enumerate(slots))
        for slots in _paragraphs(trees)
    ]


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the document with other HTML, of the same spans, in each paragraph."""
    members, trees = _opened(content)
    for slots, text in zip(_paragraphs(trees), texts, strict=True):
        _fill(slots, text)
    return _closed(members, trees)


def _opened(content):
    """Return the members of an office document, and the XML trees of those with text."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        size = sum(member.file_size for member in archive.infolist())
        if size > MOST_UNPACKED:
            raise ValueError(f"file must be at most {MOST_UNPACKED} bytes unpacked, got {size}")
        members = {x: archive.read(x) for x in archive.infolist()}
        parts = {x: data for x, data in members.items() if _TEXT_PARTS.fullmatch(x.filename)}
        tags = sum(data.count(b"<") for data in parts.values())
        if tags > MOST_TAGS:
            raise ValueError(f"file must have at most {MOST_TAGS} tags, got {tags}")
        trees = {x: etree.fromstring(data, parser) for x, data in parts.items()}
    except (*_BROKEN, etree.XMLSyntaxError) as error:
        raise ValueError(f"file must be a document of its type: {error}") from error
    if not trees:
        raise ValueError("file must be a document of its type: it has no part with text")
    return members, trees


def _closed(members, trees):
    """Return the document with the changed trees."""
    for member, tree in trees.items():
        document = tree.getroottree()
        members[member] = etree.tostring(
            document, xml_declaration=True, encoding="UTF-8", standalone=True
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data, member.compress_type)
    return out.getvalue()


def _paragraphs(trees):
    return [slots for tree in trees.values() for slots in _paragraphs_of(tree)]


class _Slot:
    """A place for text in an XML tree: inside an element ("text"), or after it ("tail")."""

    def __init__(self, element, place):
        self.element, self.place = element, place

    @property
    def text(self):
        return getattr(self.element, self.place) or ""

    @text.setter
    def text(self, value):
        setattr(self.element, self.place, value)
        if self.element.tag == f"{{{_WORD}}}t":
            self.element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")


def _paragraphs_of(tree):
    """Return the slots of each paragraph that has text."""
    paragraphs: dict[Any, list[_Slot]] = {}
    for element in tree.iter(*_TEXTS):
        office = element.tag.startswith(f"{{{_ODF}}}")
        places = ("text", "tail") if office else ("text",)
        for place in places:
            slot = _Slot(element, place)
            inside = element if place == "text" else element.getparent()
            while inside is not None and inside.tag not in _PARAGRAPHS:
                inside = inside.getparent()
            if slot.text and inside is not None:
                paragraphs.setdefault(inside, []).append(slot)
    return [slots for slots in paragraphs.values() if any(slot.text.strip() for slot in slots)]


def _fill(slots, marked):
    """Put a translation into the slots; if their order has changed, all into the longest slot."""
    order, texts = [], {i: "" for i in range(len(slots))}
    last, before = None, ""
    for number, inner, loose in _PARTS.findall(marked):
        if number:
            last = int(number)
            order.append(last)
            texts[last] += before + html.unescape(inner)
            before = ""
        elif last is None:
            before += html.unescape(loose)
        else:
            texts[last] += html.unescape(loose)
    if order != sorted(order):
        whole = html.unescape(re.sub("<[^>]*>", "", marked))
        longest = max(range(len(slots)), key=lambda i: len(slots[i].text))
        texts = {i: whole if i == longest else "" for i in texts}
    for i, slot in enumerate(slots):
        slot.text = texts[i]
