"""XLIFF 1.2 and 2: the texts of segments, and the same file with filled targets.

The file is edited at the byte positions that expat reports, so that everything but the targets and
their states stays byte for byte. Inline elements become numbered HTML tags, as in subtitles.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

_PAIRED = frozenset(["g", "pc", "mrk"])  # inline elements whose text is translated
_STATES = frozenset(
    ["", "new", "needs-translation", "initial"]
)  # of targets to fill, if they are empty
_TAG = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
_SPACE = re.compile(rb"(?:\r\n?|\n)[ \t]*\Z")
_NUMBERED = re.compile(r'<(?:span|img) id="(\d+)">|(</span>)|(<[^<>]*>)|([^<]+)')
_NAME = "urn:oasis:names:tc:xliff:document:"


@dataclass
class _Segment:
    """A segment: bytes [begin, end) that its target replaces, and the source as HTML."""

    is_open: bool  # whether it may be translated and has no final target
    tag: tuple[int, int] = (0, 0)  # start tag of a segment of XLIFF 2
    begin: int = 0
    end: int = 0
    lead: bytes = b""  # white space before a new target
    name: bytes = b"target"
    target: bytes = b""  # start tag of the target, if there is one
    has_target: bool = False
    marked: list[str] = field(default_factory=list)
    tags: list[list[str]] = field(default_factory=list)


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Return the HTML of each source to translate, with numbered tags, and an empty list.

    Sources whose target is filled, or that must not be translated, are left out.

    Raises:
        ValueError: If the content is not XLIFF in UTF-8, or declares a document type.
    """
    return ["".join(x.marked) for x in _Reader(content).segments], []


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the file with texts as targets, and the states of these."""
    reader = _Reader(content)
    result, done = [], 0
    for segment, text in zip(reader.segments, texts, strict=True):
        for begin, end, new in reader.edits(segment, _restored(segment, text)):
            result += [content[done:begin], new]
            done = end
    return b"".join([*result, content[done:]])


class _Reader:
    """The segments of a file, in order; see `read`."""

    def __init__(self, content: bytes):
        self.segments: list[_Segment] = []
        self._content, self._is_two = content, False
        self._path: list[str] = []
        self._kept = [True]  # whether the text of each open element may be translated
        self._ends: list[int] = []  # ends of the open elements that are empty; of others, 0
        self._segment: Any = None
        self._hidden = 0  # depth inside an inline element whose text is kept
        self._point = 0  # beginning of this element
        self._parser = parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.XmlDeclHandler = self._declaration
        try:
            parser.Parse(content, True)
        except expat.ExpatError as error:
            raise ValueError(f"file must be XLIFF: {error}") from error

    def _doctype(self, *_):
        raise ValueError("file must be XLIFF without a document type: entities are refused")

    def _declaration(self, version, encoding, standalone):
        if (encoding or "utf-8").lower() not in ("utf-8", "us-ascii", "ascii"):
            raise ValueError(f"file must be in UTF-8, got {encoding[:80]!r}")

    def _tag(self, place):
        """Return the tag that begins at a place."""
        match = _TAG.match(self._content, place)
        if match is None:
            raise ValueError("file must be XLIFF in UTF-8")
        return match.group()

    def _start(self, name, attributes):
        place = self._parser.CurrentByteIndex
        uri, _, local = name.rpartition(" ")
        if not self._path:
            version = attributes.get("version", "")
            if local != "xliff" or not (uri.startswith(_NAME) or not uri):
                raise ValueError(f"file must be XLIFF, got the element {local[:80]!r}")
            self._is_two = version.startswith("2")
        self._path.append(local)
        tag = self._tag(place)
        self._ends.append(place + len(tag) if tag.endswith(b"/>") else 0)
        self._kept.append(self._kept[-1] and attributes.get("translate", "yes") != "no")
        if self._inside():
            self._start_inline(local, attributes, place)
        elif local == "trans-unit":
            is_open = self._kept[-1] and attributes.get("approved") != "yes"
            self._segment = _Segment(is_open)
        elif local == "segment":
            is_open = self._kept[-1] and attributes.get("state", "") in _STATES
            self._segment = _Segment(is_open, (place, place + len(self._tag(place))))
        elif self._segment and self._path[-2] in ("trans-unit", "segment"):
            self._start_part(local, attributes, place)

    def _start_part(self, local, attributes, place):
        """Note the place of a source or a target of the segment."""
        segment, tag = self._segment, self._tag(place)
        if local == "source":
            segment.lead = (_SPACE.search(self._content, max(place - 1000, 0), place) or [b""])[0]
            segment.name = tag[1:].split(b"source")[0] + b"target"
        elif local == "target":
            segment.has_target, segment.target, segment.begin = True, tag, place
            segment.is_open &= attributes.get("state", "") in _STATES

    def _inside(self):
        """Return whether this is inside the source of the segment."""
        is_source = "source" in self._path[:-1] and "alt-trans" not in self._path
        return self._segment is not None and is_source

    def _start_inline(self, local, attributes, place):
        segment, tag = self._segment, self._tag(place)
        protected = attributes.get("translate") == "no" or attributes.get("mtype") == "protected"
        if self._hidden:
            self._hidden += 1
        elif local in _PAIRED and not protected and not tag.endswith(b"/>"):
            segment.marked.append(f'<span id="{len(segment.tags)}">')
            name = re.split(r"[\s>]", tag[1:].decode(), maxsplit=1)[0]
            segment.tags.append([tag.decode(), f"</{name}>"])
        else:
            self._hidden, self._point = 1, place
            segment.marked.append(f'<img id="{len(segment.tags)}">')
            segment.tags.append(["", ""])

    def _characters(self, text):
        if self._hidden or self._segment is None or "alt-trans" in self._path:
            return
        if "source" in self._path:
            self._segment.marked.append(html.escape(text, quote=False))
        elif self._path[-1] == "target" and text.strip():
            self._segment.is_open = False

    def _end(self, name):
        place, segment, local = self._parser.CurrentByteIndex, self._segment, self._path[-1]
        end = self._ends.pop() or place + len(self._tag(place))
        if self._inside():
            if self._hidden == 1:
                segment.tags[-1][0] = self._content[self._point : end].decode()
            elif not self._hidden:
                segment.marked.append("</span>")
            self._hidden = max(self._hidden - 1, 0)
        elif segment and self._path[-2] in ("trans-unit", "segment"):
            if local == "target":
                segment.end = end
            elif local in ("source", "seg-source") and not segment.has_target:
                segment.begin = segment.end = end
        self._path.pop()
        self._kept.pop()
        if local in ("trans-unit", "segment") and segment:
            text = re.sub("<[^<>]*>|&[a-z]+;", "", "".join(segment.marked))
            if segment.is_open and any(map(str.isalpha, text)):
                self.segments.append(segment)
            self._segment = None

    def edits(self, segment, text):
        """Return the (begin, end, new bytes) that fill the target of a segment with a text."""
        inner = text.encode()
        edits = []
        if self._is_two:
            begin, end = segment.tag
            edits.append((begin, end, _with(self._content[begin:end], b"state", b"translated")))
        opening = segment.target or b"<" + segment.name + b">"
        opening = opening.removesuffix(b"/>").removesuffix(b">").rstrip() + b">"
        if not self._is_two:
            opening = _with(opening, b"state", b"needs-review-translation")
            opening = _with(opening, b"state-qualifier", b"mt-suggestion")
        new = opening + inner + b"</" + segment.name + b">"
        lead = b"" if segment.has_target else segment.lead
        return [*edits, (segment.begin, segment.end, lead + new)]


def _with(tag, name, value):
    """Return a start tag with an attribute set."""
    pattern = rb"(\s" + name + rb"\s*=\s*)(?:\"[^\"]*\"|'[^']*')"
    new, count = re.subn(pattern, lambda x: x[1] + b'"' + value + b'"', tag, count=1)
    return new if count else tag[:-1] + b" " + name + b'="' + value + b'">'


def _restored(segment, translation):
    """Return a translation as XML, with the inline elements in place of the numbered tags."""
    parts, opened = [], []
    for number, closing, other, text in _NUMBERED.findall(translation):
        if number:
            tag, end = segment.tags[int(number)]
            parts.append(tag)
            opened += [end] if end else []
        elif closing:
            parts.append(opened.pop() if opened else "")
        else:
            parts.append(escape(html.unescape(other or text)))
    return "".join(parts)
