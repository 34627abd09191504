"""HTML in, the same tags out: text is translated, and each tag stands around the words it did.

Tags are kept letter by letter, each exactly once. Inside a block, a paragraph say, those that
stand in a line of text are put where the alignment of the words says.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from keras_transformer.analysis.alignment import words

INLINE = frozenset(
    [
        "a",
        "abbr",
        "acronym",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "img",
        "input",
        "ins",
        "label",
        "mark",
        "q",
        "s",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
        "wbr",
    ]
)
UNTRANSLATED = frozenset(
    [
        "code",
        "kbd",
        "math",
        "noscript",
        "pre",
        "samp",
        "script",
        "style",
        "svg",
        "template",
        "textarea",
        "var",
    ]
)
VOID = frozenset(["img", "input", "wbr"])

DEEPEST = 100  # elements within each other in a line of text; tags of deeper ones stand alone

# A tag that the text's end cuts off is one as well: so no `<` is looked at from more than once.
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*(?:>|\Z)|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    r"(?P<rest>(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^>\"'])*+)(?:>|\Z)",
    re.DOTALL,
)
_PROTECTED = re.compile(r"translate\s*=\s*[\"']?no\b|class\s*=\s*[\"'][^\"']*\bnotranslate\b", re.I)

Span = tuple[int, int]


@dataclass
class Node:
    """A tag in a line of text, or an element with what is in it; places count characters."""

    begin: int
    end: int
    opening: str
    closing: str = ""
    children: list[Node] = field(default_factory=list)


@dataclass
class Block:
    """Text that is translated as a whole, with the tags in it; or what is kept as it is.

    Args:
        raw: what is kept, if there is no text.
        text: without tags.
        nodes: the tags.
    """

    raw: str = ""
    text: str = ""
    nodes: list[Node] = field(default_factory=list)


def blocks(source: str) -> list[Block]:
    """Splits HTML: together the blocks are all of it."""
    found: list[Block] = []
    items: list[tuple[str, str, str]] = []  # kind, name, raw

    def flush():
        if any(kind == "text" and not raw.isspace() for kind, _, raw in items):
            found.append(_block(items))
        elif items:
            found.append(Block("".join(raw for _, _, raw in items)))
        items.clear()

    place = 0
    while tag := _TAG.search(source, place):
        if tag.start() > place:
            items.append(("text", "", source[place : tag.start()]))
        name = (tag["name"] or "").lower()
        place = tag.end()
        if name and not tag["end"] and _is_untranslated(name, tag["rest"]):
            place = _end_of_element(source, name, place)
            raw = source[tag.start() : place]
            if name in ("code", "kbd", "samp", "var") or name in INLINE:
                items.append(("point", name, raw))
            else:
                flush()
                found.append(Block(raw))
        elif name in INLINE and tag[0].endswith(">"):
            kind = "close" if tag["end"] else "point" if name in VOID else "open"
            items.append((kind, name, tag[0]))
        elif not name:  # a comment
            items.append(("point", "", tag[0]))
        else:
            flush()
            found.append(Block(tag[0]))
    if place < len(source):
        items.append(("text", "", source[place:]))
    flush()
    return found


def _is_untranslated(name, attributes):
    return (name in UNTRANSLATED or _PROTECTED.search(attributes)) and not (
        attributes.endswith("/") or name in VOID
    )


def _end_of_element(source, name, place):
    """The index after the end tag of an element begun before `place`; the end if it has none."""
    depth = 1
    for tag in re.compile(rf"<(/?){re.escape(name)}(?=[\s/>])[^>]*(?:>|\Z)", re.I).finditer(
        source, place
    ):
        depth += -1 if tag[1] else 0 if tag[0].endswith("/>") else 1
        if depth == 0 or (tag[1] and name in ("script", "style", "textarea")):
            return tag.end()
    return len(source)


def _block(items):
    """One block of text and inline tags: an element's tags are found, others are points."""
    text = ""
    root = Node(0, 0, "")
    stack = [(root, "")]
    for kind, name, raw in items:
        here = len(text)
        if kind == "text":
            text += html.unescape(raw)
        elif kind == "open" and len(stack) <= DEEPEST:
            node = Node(here, here, raw)
            stack[-1][0].children.append(node)
            stack.append((node, name))
        elif kind == "close" and any(name == opened for _, opened in stack):
            while stack[-1][1] != name:
                _dissolve(stack)
            node, _ = stack.pop()
            node.end, node.closing = here, raw
        else:
            stack[-1][0].children.append(Node(here, here, raw))
    while len(stack) > 1:
        _dissolve(stack)
    return Block(text=text, nodes=root.children)


def _dissolve(stack):
    """An element without an end is a tag; what is in it stands beside it."""
    node, _ = stack.pop()
    stack[-1][0].children += node.children
    node.end, node.children = node.begin, []


def placed(
    block: Block, translation: str, aligned: Sequence[int | None], target_words: Sequence[Span]
) -> str:
    """A block's translation with its tags.

    Args:
        block: with text.
        translation: of its text.
        aligned: for each of the translation's words the number of the source's word that it is
            a translation of, or None.
        target_words: where the translation's words stand.
    """
    source_words = words(block.text)
    begins, ends = [begin for begin, _ in source_words], [end for _, end in source_words]
    partners: dict[int, list[int]] = defaultdict(list)  # of each of the source's words, in order
    for j, i in enumerate(aligned):
        if i is not None:
            partners[i].append(j)
    tags: list[tuple[int, str]] = []  # where in the translation, in this order

    def choose(node, low, high):
        """The words among [low, high) that a tag stands around, or before which it stands."""
        first, last = bisect_right(ends, node.begin), bisect_left(begins, node.end)
        if first < last:
            held = (j for i in range(first, last) for j in partners[i] if low <= j < high)
            return _longest_run(sorted(held)) or (high, high)
        later = range(bisect_left(begins, node.begin), len(begins))
        at = next((j for i in later for j in partners[i] if low <= j < high), high)
        return at, at

    def place(nodes, low, high, end):
        """Siblings, none over another, among the words [low, high), which reach to `end`."""
        for (first, last), node in sorted(
            ((choose(node, low, high), node) for node in nodes), key=lambda x: x[0][0]
        ):
            low = max(first, low)
            last = max(last, low)
            begin = target_words[low][0] if low < high else end
            finish = target_words[last - 1][1] if last > low else begin
            tags.append((begin, node.opening + _space(block.text, node)))
            place(node.children, low, last, finish)
            if node.closing:
                tags.append((finish, node.closing))
            low = last

    place(block.nodes, 0, len(target_words), len(translation))
    result, reached = [], 0
    for at, tag in tags:
        at = max(at, reached)
        result += [html.escape(translation[reached:at], quote=False), tag]
        reached = at
    return "".join(result) + html.escape(translation[reached:], quote=False)


def _space(text, node):
    """Return the second of the two spaces around a tag that stands for a word, or ''."""
    around = text[max(node.begin - 1, 0) : node.begin + 1]
    return " " if not node.closing and len(around) == 2 and around.isspace() else ""


def _longest_run(numbers):
    """The ends of the longest run, in which no more than one is missing at a time, or None."""
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number - runs[-1][-1] > 2:
            runs.append([])
        runs[-1].append(number)
    best = max(runs, key=len, default=None)
    return best and (best[0], best[-1] + 1)
