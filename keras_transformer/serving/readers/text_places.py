"""Places for text in the XML of office documents, and translations put into them.

A text consists of slots, one for each part with the same format, so that translations keep formats.
"""

from __future__ import annotations

import html
import re
from typing import Any

from lxml import etree

_OOXML, _STRICT = "http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml"
OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
_NAMESPACES = {
    "w": (f"{_OOXML}/wordprocessingml/2006/main", f"{_STRICT}/wordprocessingml/main"),
    "wp": (f"{_OOXML}/drawingml/2006/wordprocessingDrawing",
           f"{_STRICT}/drawingml/wordprocessingDrawing"),
    "a": (f"{_OOXML}/drawingml/2006/main", f"{_STRICT}/drawingml/main"),
    "c": (f"{_OOXML}/drawingml/2006/chart", f"{_STRICT}/drawingml/chart"),
    "m": (f"{_OOXML}/officeDocument/2006/math", f"{_STRICT}/officeDocument/math"),
    "p": (f"{_OOXML}/presentationml/2006/main", f"{_STRICT}/presentationml/main"),
    "text": (f"{OFFICE}:text:1.0",),
    "draw": (f"{OFFICE}:drawing:1.0",),
    "svg": (f"{OFFICE}:svg-compatible:1.0",),
    "presentation": (f"{OFFICE}:presentation:1.0",),
}  # fmt: skip
_PREFIXES = {uri: prefix for prefix, uris in _NAMESPACES.items() for uri in uris}

WORDS = frozenset(["w:t", "a:t"])  # elements that hold words
# Elements whose words are not translated, and the names under which they are reported.
LEFT = dict.fromkeys(["w:del", "w:moveFrom", "text:tracked-changes"], "deleted text")
LEFT |= dict.fromkeys(["w:rt", "text:ruby-text"], "ruby")
# Elements that may lie between two parts of a word.
NOTHING = frozenset(["w:proofErr", "w:lastRenderedPageBreak", "text:soft-page-break"])
# Elements that are not read, nor anything inside them.
HIDDEN = frozenset(LEFT) | frozenset(
    ["w:pPr", "w:rPr", "a:rPr", "text:note-citation", "text:script"]
)
# Attributes and elements of a run's properties that do not change its format.
_LANGUAGE = frozenset(["lang", "altLang", "dirty", "err", "noProof", "proofErr"])
_PARTS = re.compile(r'<span id="(\d+)">(.*?)</span>|([^<]+)', re.DOTALL)


def name_of(element: Any) -> str:
    """Return an element's name with its usual prefix, such as "w:t"; "" for other namespaces."""
    if not isinstance(element.tag, str):  # a comment
        return ""
    uri, _, local = element.tag[1:].partition("}")
    return f"{_PREFIXES[uri]}:{local}" if uri in _PREFIXES else ""


class Slot:
    """A place for text: inside an element ("text"), after it ("tail"), or in an attribute.

    Adjacent places of the same format are one slot, because Word divides words that it has checked.

    Attributes:
        ends_at_object: Whether an object follows that separates words, even without spaces.
    """

    def __init__(self, element: Any, place: str, is_attribute: bool = False):
        self._places = [(element, place)]
        self._is_attribute = is_attribute
        self.ends_at_object = False

    @property
    def text(self) -> str:
        """The text, without soft hyphens."""
        if self._is_attribute:
            ((element, place),) = self._places
            return element.get(place)
        return "".join(getattr(x, place) or "" for x, place in self._places).replace("\xad", "")

    @text.setter
    def text(self, value: str) -> None:
        if self._is_attribute:
            ((element, place),) = self._places
            element.set(place, value)
            return
        for i, (element, place) in enumerate(self._places):
            setattr(element, place, "" if i else value)
            if name_of(element) == "w:t":
                element.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")

    def joins(self, element: Any, place: str) -> bool:
        """Add the next place to the slot if it has the same format; return whether it was added."""
        last, before = self._places[-1]
        if name_of(last) in WORDS:
            is_same = _next(last) is element or (
                _next(last) is None and _is_next_run(last, element)
            )
        else:
            holder = last if before == "text" else last.getparent()
            is_same = place == "tail" and element.getparent() is holder and _is_nothing(element)
        if is_same:
            self._places.append((element, place))
        return is_same


def _is_nothing(element):
    name = name_of(element)
    is_empty = name in WORDS and not element.text
    return is_empty or name in NOTHING or not isinstance(element.tag, str)


def _next(element):
    """Return the next sibling that has content or meaning; None if there is none."""
    element = element.getnext()
    while element is not None and _is_nothing(element):
        element = element.getnext()
    return element


def _is_next_run(last, element):
    """Return whether `element` begins the run after that of `last`, in the same format."""
    last_run, next_run = last.getparent(), element.getparent()
    first = next(x for x in next_run if not (_is_nothing(x) or name_of(x) in HIDDEN))
    return (
        first is element
        and _next(last_run) is next_run
        and last_run.tag == next_run.tag
        and _format(last_run) == _format(next_run)
    )


def _format(run):
    """Return the format of a run of Word or PowerPoint, without language and proofing marks."""
    for child in run:
        if name_of(child) in ("w:rPr", "a:rPr"):
            inner = [x for x in child if etree.QName(x).localname not in _LANGUAGE]
            attributes = {x: y for x, y in child.attrib.items() if x not in _LANGUAGE}
            return attributes, [etree.tostring(x, with_tail=False) for x in inner]
    return {}, []


def marked(slots: list[Slot]) -> str:
    """Return the HTML of a text, with a numbered span for each of its slots."""
    parts = []
    for i, slot in enumerate(slots):
        space = " " if _needs_space_after(slots, i) else ""
        parts.append(f'<span id="{i}">{html.escape(slot.text)}</span>{space}')
    return "".join(parts)


def _needs_space_after(slots, i):
    """Return whether only an object, and no space, separates a slot's text from the next one's."""
    if not slots[i].ends_at_object or i + 1 == len(slots):
        return False
    return not (slots[i].text[-1:].isspace() or slots[i + 1].text[:1].isspace())


def _with_space_as_before(slots, i, first, second):
    """Return the translations of two adjacent slots, with the space between them as before."""
    is_apart = first[-1:].isspace() or second[:1].isspace()
    if not (first and second and is_apart) or slots[i].text[-1:].isspace():
        return first, second
    if slots[i + 1].text[:1].isspace():
        return first.rstrip(), " " + second.lstrip()
    return (first.rstrip(), second.lstrip()) if slots[i].ends_at_object else (first, second)


def fill(slots: list[Slot], translation: str) -> None:
    """Put a translation into slots; if it changes their order, put all of it into the longest.

    Args:
        slots: The slots of a text.
        translation: HTML with the spans of `marked`.
    """
    order, texts = [], {i: "" for i in range(len(slots))}
    last, before = None, ""
    for number, inner, loose in _PARTS.findall(translation):
        if number:
            last = int(number)
            if inner:
                order.append(last)
            texts[last] += before + html.unescape(inner)
            before = ""
        elif last is None:
            before += html.unescape(loose)
        else:
            texts[last] += html.unescape(loose)
    if order != sorted(order):
        whole = html.unescape(re.sub("<[^>]*>", "", translation))
        longest = max(range(len(slots)), key=lambda i: len(slots[i].text))
        texts = {i: whole if i == longest else "" for i in texts}
    for i in range(len(slots) - 1):
        texts[i], texts[i + 1] = _with_space_as_before(slots, i, texts[i], texts[i + 1])
    for i, slot in enumerate(slots):
        slot.text = texts[i]
