"""Translate files, keeping their format: plain text, HTML, subtitles, office documents."""

from __future__ import annotations

import asyncio
import html
import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Awaitable, Callable
from pathlib import PurePath
from typing import Any

from keras_transformer.config import require
from keras_transformer.system.extras import missing

Translate = Callable[[list[str], str], Awaitable[list[str]]]


async def translate_file(name: str, content: bytes, translate: Translate) -> bytes:
    """Return the translation of a file.

    Args:
        name: Name of the file; its suffix, one of `SUFFIXES`, gives the type.
        content: Content of the file.
        translate: Function that translates texts, given as "text" or as "html".

    Raises:
        ValueError: If the suffix is unknown, or the content is not of that type.
        ImportError: If the library for this type is missing.
    """
    suffix = PurePath(name).suffix.lower()
    require(suffix in SUFFIXES, "file", name, f"one of {', '.join(SUFFIXES)}")
    try:
        return await SUFFIXES[suffix](content, translate)
    except UnicodeDecodeError as error:
        raise ValueError(f"file {name!r} must be UTF-8: {error}") from error


async def _text(content, translate):
    (found,) = await translate([content.decode("utf-8-sig")], "text")
    return found.encode()


async def _html(content, translate):
    (found,) = await translate([content.decode("utf-8-sig")], "html")
    return found.encode()


async def _subtitles(content, translate):
    # Not parsed by the package srt, whose regular expressions take hours for some hundred kB of
    # digits.
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    times = [i for i, line in enumerate(lines) if _TIMES.fullmatch(line)]
    if not times:
        raise ValueError(f"file must hold SubRip subtitles, got {lines[0]!r:.60}")
    places = []
    for begin, end in zip(times, [*times[1:], len(lines)], strict=True):
        if end < len(lines) and lines[end - 1].strip().isdecimal():
            end -= 1  # the number of the next subtitle
        while end > begin + 1 and not lines[end - 1].strip():
            end -= 1
        if end > begin + 1:
            places.append((begin + 1, end))
    found = await translate([" ".join(lines[begin:end]) for begin, end in places], "html")
    result, done = [], 0
    for (begin, end), text in zip(places, found, strict=True):
        result += [*lines[done:begin], _wrapped(text, end - begin)]
        done = end
    return "\n".join([*result, *lines[done:]]).encode()


def _wrapped(text, lines):
    """Wrap the text to a number of lines of about equal length; tags are not broken."""
    if lines == 1:
        return text
    words = [(x, len(re.sub("<[^<>]*>", "", x))) for x in re.findall(r"(?:<[^<>]*>|\S)+", text)]
    target = sum(width + 1 for _, width in words) / lines
    result, length = [[]], 0.0
    for word, width in words:
        if result[-1] and length + width / 2 > target and len(result) < lines:
            result.append([])
            length = 0
        result[-1].append(word)
        length += width + 1
    return "\n".join(map(" ".join, result))


async def _office(content, translate):
    members, trees = await asyncio.to_thread(_opened, content)
    paragraphs = [slots for tree in trees.values() for slots in _paragraphs(tree)]
    # Each differently formatted part of a paragraph becomes an HTML element for the translation.
    marked = [
        "".join(f'<span id="{i}">{html.escape(x.text)}</span>' for i, x in enumerate(slots))
        for slots in paragraphs
    ]
    found = await translate(marked, "html")
    for slots, text in zip(paragraphs, found, strict=True):
        _fill(slots, text)
    return await asyncio.to_thread(_closed, members, trees)


def _opened(content):
    """Return the members of an office document, and the XML trees of those with text."""
    etree = _etree()
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
        size = sum(member.file_size for member in archive.infolist())
        require(size <= MOST_UNPACKED, "file", f"{size} bytes unpacked", f"at most {MOST_UNPACKED}")
        members = {x: archive.read(x) for x in archive.infolist()}
        trees = {
            x: etree.fromstring(data, parser)
            for x, data in members.items()
            if _TEXT_PARTS.fullmatch(x.filename)
        }
    except (*_BROKEN, etree.XMLSyntaxError) as error:
        raise ValueError(f"file must be a document of its type: {error}") from error
    if not trees:
        raise ValueError("file must be a document of its type: it has no part with text")
    return members, trees


def _closed(members, trees):
    """Return the document with the changed trees."""
    etree = _etree()
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


def _paragraphs(tree):
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


def _etree():
    try:
        from lxml import etree
    except ImportError as error:
        raise missing("translating such a file", "serve") from error
    return etree


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
_TIMES = re.compile(r"\s*\d+:\d+:\d+[,.]\d+ *--> *\d+:\d+:\d+[,.]\d+.*")
_PARTS = re.compile(r'<span id="(\d+)">(.*?)</span>|([^<]+)', re.DOTALL)
MOST_UNPACKED = 200_000_000
SUFFIXES: dict[str, Callable[[bytes, Translate], Awaitable[bytes]]] = {
    ".txt": _text,
    ".html": _html,
    ".htm": _html,
    ".srt": _subtitles,
    ".docx": _office,
    ".pptx": _office,
    ".odt": _office,
    ".odp": _office,
}
