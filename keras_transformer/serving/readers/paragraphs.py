"""The texts in the XML of office documents, without deleted text and other hidden elements.

A text ends with its paragraph, and at a line break, a tab or OpenDocument's repeated spaces. These
separators stay in place.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import re
from typing import Any

from lxml import etree

if __package__:
    from keras_transformer.serving.readers import text_places
else:  # run by `__main__`, without the package
    text_places = importlib.import_module("text_places")

Slot, name_of, HIDDEN, LEFT, OFFICE, WORDS = (
    text_places.Slot,
    text_places.name_of,
    text_places.HIDDEN,
    text_places.LEFT,
    text_places.OFFICE,
    text_places.WORDS,
)
_TEXT = f"{{{OFFICE}:text:1.0}}"
_PLACEHOLDER = f"{{{OFFICE}:presentation:1.0}}placeholder"

PARAGRAPHS = frozenset(["w:p", "a:p", "text:p", "text:h"])
# Elements that hold one text outside any paragraph: comments, alternative texts, headers, footers.
ALONE = frozenset(
    ["p:text", "svg:title", "svg:desc", "presentation:footer-decl", "presentation:header-decl"]
)
BREAKS = frozenset(["w:br", "w:cr", "w:tab", "w:ptab", "a:br", "text:tab", "text:line-break"])
HYPHENS = {"w:noBreakHyphen": "-", "w:softHyphen": ""}
# Elements that separate two words, even without a space around them.
OBJECTS = frozenset(["w:sym", "w:object", "wp:inline", "m:oMath", "text:s"])


class _Paragraph:
    """A paragraph while it is read: the slots of each of its texts."""

    def __init__(self, is_open_document: bool):
        self.is_open_document = is_open_document
        self.texts: list[list[Any]] = [[]]
        self._can_join = False

    def add(self, element: Any, place: str) -> None:
        """Add the text at `place`, "text" or "tail", of an element."""
        if not getattr(element, place):
            return
        slots = self.texts[-1]
        if not (self._can_join and slots[-1].joins(element, place)):
            slots.append(Slot(element, place))
        self._can_join = True

    def add_object(self) -> None:
        """Record that an object follows the last slot."""
        if self.texts[-1]:
            self.texts[-1][-1].ends_at_object = True
        self._can_join = False

    def end_text(self) -> None:
        """End the current text, and begin another."""
        self.texts.append([])
        self._can_join = False


class Paragraphs:
    """The texts of an XML tree.

    Args:
        tree: Root of the tree.
        is_master: Whether the tree has slide masters or layouts; their placeholders are not read.

    Attributes:
        texts: The slots of each text that has letters, in the order of the tree.
        left: Names of parts whose words are not read.
    """

    def __init__(self, tree: Any, is_master: bool = False):
        self._is_master = is_master
        self._paragraphs: list[_Paragraph] = []
        self.left: set[str] = set()
        self._walk(tree, None)
        every = (text for paragraph in self._paragraphs for text in paragraph.texts)
        self.texts = [x for x in every if any(map(str.isalpha, "".join(slot.text for slot in x)))]

    def _walk(self, element, paragraph):
        """Collect the texts in an element; `paragraph` is the one that contains it, or None."""
        if not isinstance(element.tag, str):  # a comment
            return
        name = name_of(element)
        if name in HIDDEN or (self._is_master and _is_placeholder(element, name)):
            if name in LEFT:
                self.left.add(LEFT[name])
            return
        if name in PARAGRAPHS:
            paragraph = self._begun(name.startswith("text:"))
            _part_at_tabs(element)
        elif name in ALONE or (name == "c:v" and _is_label(element)):
            self._begun(False).add(element, "text")
            return
        elif name in HYPHENS:
            element.text, name = HYPHENS[name], "w:t"
            element.tag = element.tag.rpartition("}")[0] + "}t"
        elif paragraph is not None and _is_break(element, name):
            paragraph.end_text()
        elif paragraph is not None and _is_object(element, name):
            paragraph.add_object()
        for attribute in _attributes(element, name):
            if element.get(attribute, "").strip():
                slot = Slot(element, attribute, is_attribute=True)
                self._begun(False).texts[0].append(slot)
        if paragraph is not None and paragraph.is_open_document:
            # Other elements, such as frames, have their text in paragraphs of their own.
            paragraph = paragraph if name.startswith("text:") and name != "text:note" else None
        is_text = name in WORDS and element.text != "\t"
        if paragraph is not None and (paragraph.is_open_document or is_text):
            paragraph.add(element, "text")
        for child in element:
            self._walk(child, paragraph)
            if paragraph is not None and paragraph.is_open_document:
                paragraph.add(child, "tail")

    def _begun(self, is_open_document):
        self._paragraphs.append(_Paragraph(is_open_document))
        return self._paragraphs[-1]


def _is_placeholder(element, name):
    """Return whether an element of a slide master is a placeholder: slides have their own text."""
    if name == "p:sp":
        return any(name_of(x) == "p:ph" for x in element.iter())
    return element.get(_PLACEHOLDER) == "true"


def _is_label(element):
    """Return whether a value of a chart is a text: the name of a category or a series."""
    ancestors = itertools.islice(element.iterancestors(), 3)
    above = [etree.QName(x).localname for x in ancestors]
    return above[:1] == ["tx"] or "strCache" in above or "multiLvlStrCache" in above


def _attributes(element, name):
    """Return the names of attributes with an alternative text."""
    if name in ("w:tblCaption", "w:tblDescription"):
        return [element.tag.rpartition("}")[0] + "}val"]
    is_shape = etree.QName(element).localname in ("docPr", "cNvPr")
    return ["title", "descr"] if is_shape else []


def _part_at_tabs(paragraph):
    """Split the runs of a DrawingML paragraph at tabs, which are characters in its texts."""
    for run in [x for x in paragraph if name_of(x) == "a:r"]:
        for words in [x for x in run if name_of(x) == "a:t" and "\t" in (x.text or "")]:
            *pieces, words.text = re.split("(\t)", words.text)
            for piece in pieces:
                part = copy.deepcopy(run)
                next(x for x in part if name_of(x) == "a:t").text = piece
                run.addprevious(part)


def _is_break(element, name):
    """Return whether an element ends a text; `text:s` does if it is several spaces."""
    is_wide = name == "text:s" and element.get(f"{_TEXT}c", "1") not in ("0", "1")
    return name in BREAKS or is_wide or (name == "a:t" and element.text == "\t")


def _is_object(element, name):
    return name in OBJECTS or (
        name == "draw:frame" and element.get(f"{_TEXT}anchor-type") == "as-char"
    )
