"""Translation of HTML: the text is translated, the tags are kept.

White space is folded as a browser folds it, so that a sentence may extend over several lines. Every
tag is kept unchanged and occurs exactly once. Inside a block, such as a paragraph, the word
alignment determines the places of inline tags.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from keras_transformer.serving.folding import WHITE, KeptSpaces, folded
from keras_transformer.system import interruption
from keras_transformer.text.word_spans import words

INLINE = frozenset([
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em",
    "font", "i", "img", "input", "ins", "label", "mark", "nobr", "q", "rb", "ruby", "s",
    "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "wbr",
])  # fmt: skip
UNTRANSLATED = frozenset([
    "code", "kbd", "math", "noscript", "pre", "rp", "rt", "rtc", "samp", "script", "style",
    "svg", "template", "textarea", "var",
])  # fmt: skip
# Untranslated elements inside a sentence; ruby text is the pronunciation of the words before it.
_OBJECTS = frozenset(["code", "kbd", "math", "rp", "rt", "rtc", "samp", "svg", "var"])
_RUBY_END = re.compile(r"</r(?:t|p|tc)\s*>|(?=<r[tpb][\s>c]|</ruby)", re.IGNORECASE)
VOID = frozenset(["img", "input", "wbr"])

DEEPEST = 100  # nesting depth of inline elements; deeper tags become points, which hold no text

# A tag cut off by the end of the text also matches, so that no `<` is scanned more than once.
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<[!?][^>]*(?:>|\Z)|<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"
    r"(?P<rest>(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^>\"'])*+)(?:>|\Z)",
    re.DOTALL,
)
_NAME = re.compile(r"<(?P<end>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?=[\s/>])")
_PROTECTED = re.compile(r"translate\s*=\s*[\"']?no\b|class\s*=\s*[\"'][^\"']*\bnotranslate\b", re.I)
# A character reference with more digits than Python converts: no character has such a number.
_HUGE_NUMBER = re.compile(r"&#\d{4000,}+")

Span = tuple[int, int]


@dataclass
class Node:
    """An inline element with its children; or a point: a tag, comment or object without a text.

    `begin` and `end` are positions in the block's text, in characters; those of a point are equal.
    """

    begin: int
    end: int
    opening: str
    closing: str = ""
    children: list[Node] = field(default_factory=list)


@dataclass
class Block:
    """A text to translate, with its inline tags; or HTML that is kept unchanged.

    Args:
        raw: The HTML to keep, if there is no text.
        text: The text without tags, with its white space folded.
        nodes: The inline tags.
    """

    raw: str = ""
    text: str = ""
    nodes: list[Node] = field(default_factory=list)


def blocks(source: str) -> list[Block]:
    """Split HTML into blocks; together they are the whole source, with white space folded."""
    document: list[Block] = []
    kept = KeptSpaces()
    items: list[tuple[str, str, str]] = []  # kind, name, raw

    def flush():
        if any(kind in ("text", "kept") and not raw.isspace() for kind, _, raw in items):
            document.append(_block(items))
        elif items:
            document.append(Block("".join(raw for _, _, raw in items)))
        items.clear()

    place = 0
    while tag := _TAG.search(source, place):
        interruption.check()
        if tag.start() > place:
            items.append(("kept" if kept else "text", "", source[place : tag.start()]))
        name = (tag["name"] or "").lower()
        place = tag.end()
        if name and not tag["end"] and _is_untranslated(name, tag["rest"]):
            place = _end_of_element(source, name, place)
            raw = source[tag.start() : place]
            if name in _OBJECTS or name in INLINE:
                items.append(("point", name, raw))
            else:
                flush()
                document.append(Block(raw))
        elif name in INLINE and tag[0].endswith(">"):
            kind = "close" if tag["end"] else "point" if name in VOID else "open"
            items.append((kind, name, tag[0]))
            kept.note(kind, name, tag["rest"])
        elif not name:  # a comment
            items.append(("point", "", tag[0]))
        else:
            flush()
            document.append(Block(tag[0]))
            kept.note("close" if tag["end"] else "open", name, tag["rest"])
    if place < len(source):
        items.append(("kept" if kept else "text", "", source[place:]))
    flush()
    return document


def _is_untranslated(name, attributes):
    return (name in UNTRANSLATED or _PROTECTED.search(attributes)) and not (
        attributes.endswith("/") or name in VOID
    )


def _end_of_element(source, name, place):
    """Return the index after the end tag of the element whose start tag ends at `place`.

    Return the length of the source if there is no end tag.
    """
    if name in ("rt", "rp", "rtc"):  # their end tags may be missing
        end = _RUBY_END.search(source, place)
        return end.end() if end else place
    depth, tag = 1, _NAME.search(source, place)
    while tag:
        place = tag.end()
        if tag["name"].lower() == name:
            place = source.find(">", place) + 1 or len(source)
            depth += -1 if tag["end"] else 0 if source[place - 2] == "/" else 1
            if depth == 0 or (tag["end"] and name in ("script", "style", "textarea")):
                return place
        tag = _NAME.search(source, place)
    return len(source)


def _block(items):
    """Return a block of text and inline tags: matching tags become elements, others points."""
    text, has_word = "", False
    root = Node(0, 0, "")
    stack = [(root, "")]
    after_object = False
    for kind, name, raw in items:
        here = len(text)
        if kind in ("text", "kept"):
            part = html.unescape(_HUGE_NUMBER.sub("&#xfffd", raw)).replace("\xad", "")
            last = text[-1:] if has_word else None
            text += part if kind == "kept" else folded(last, part, after_object)
            has_word = has_word or bool(part.strip(WHITE))
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
        after_object = kind == "point" and bool(name)
    # White space at the end of the block is kept unfolded, as at its beginning.
    if items[-1][0] == "text" and text[-1:] in WHITE:
        text = text[:-1] + part[len(part.rstrip(WHITE)) :]
    while len(stack) > 1:
        _dissolve(stack)
    return Block(text=text, nodes=root.children)


def _dissolve(stack):
    """Turn an element without an end tag into a point, and move its children to its parent."""
    node, _ = stack.pop()
    stack[-1][0].children += node.children
    node.end, node.children = node.begin, []


def placed(
    block: Block, translation: str, aligned: Sequence[int | None], target_words: Sequence[Span]
) -> str:
    """Return the HTML of a block's translation: the tags are put around the aligned words.

    Args:
        block: A block with text.
        translation: Translation of its text.
        aligned: For each word of the translation, the index of its source word, or None.
        target_words: Start and end of each word in the translation.
    """
    source_words = words(block.text)
    begins, ends = [begin for begin, _ in source_words], [end for _, end in source_words]
    partners: dict[int, list[int]] = defaultdict(list)  # target words of each source word, in order
    for j, i in enumerate(aligned):
        if i is not None:
            partners[i].append(j)
    tags: list[tuple[int, str]] = []  # (position in the translation, tag), in output order

    def ranges(nodes, low, high):
        """Yield the range of words in [low, high) inside each tag; for a point, an empty range."""
        known: dict[Span, Span] = {}  # many tags may be inside the same word
        uses: list[Span] = []
        for node in nodes:
            first, last = words_of = bisect_right(ends, node.begin), bisect_left(begins, node.end)
            if first < last:
                if words_of not in known:
                    held = (j for i in range(first, last) for j in partners[i] if low <= j < high)
                    known[words_of] = _longest_run(sorted(held)) or (high, high)
                yield known[words_of]
                continue
            uses = uses or [*_first_uses(aligned, low, high), (len(begins), high)]
            _, at = uses[bisect_left(uses, (bisect_left(begins, node.begin), -1))]
            yield at, at

    def place(nodes, low, high, end):
        """Place siblings without overlap among words [low, high), which end at character `end`."""
        for (first, last), node in sorted(
            zip(ranges(nodes, low, high), nodes, strict=True), key=lambda x: x[0][0]
        ):
            interruption.check()
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
    """Return " " after a point between two spaces: there it takes the place of a word; else ""."""
    around = text[max(node.begin - 1, 0) : node.begin + 1]
    return " " if not node.closing and len(around) == 2 and around.isspace() else ""


def _first_uses(aligned, low, high):
    """Return (source word, first target word in [low, high) that is aligned to it), sorted."""
    uses: dict[int, int] = {}
    for j in range(low, high):
        if aligned[j] is not None:
            uses.setdefault(aligned[j], j)
    return sorted(uses.items())


def _longest_run(numbers):
    """Return the longest run of sorted numbers, as [start, end); None if there are no numbers.

    Single numbers may be missing in a run.
    """
    runs: list[list[int]] = []
    for number in numbers:
        if not runs or number - runs[-1][-1] > 2:
            runs.append([])
        runs[-1].append(number)
    best = max(runs, key=len, default=None)
    return best and (best[0], best[-1] + 1)
