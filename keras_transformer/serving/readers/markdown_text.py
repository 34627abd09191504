"""Markdown: the texts of paragraphs, headings and cells, and the same file with other texts.

Blocks are found by markdown-it, and inline marks in their lines here, because only positions in the
source let everything else stay byte for byte. Marks become numbered HTML tags, as in subtitles.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

_LINES = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_FRONT_MATTER = re.compile(
    r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?:[^\r\n]*(?:\r\n?|\n))*?\1[ \t]*(?=[\r\n]|\Z)"
)
_TOKENS = re.compile(
    r"(?P<break>\\?\n)"
    r"|(?P<text>\\[!-/:-@\[-`{-~])"  # an escaped mark
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<point><[a-zA-Z/!?][^<>]*>|(?:https?://|www\.)[^\s<>\[\]()*`]+|\[\^[^\[\]]+\])"
    r"|(?P<open>!?\[)"
    r"|(?P<close>\](?:\((?:[^()\\]|\\.|\([^()]*\))*\)|\[[^\[\]]*\])?)"
    r"|(?P<emphasis>\*+|~~|(?<![^\W_])_+|_+(?![^\W_]))"
    r"|(?P<mark>[`<*])",
    re.DOTALL,
)
_NUMBERED = re.compile(r'<(?:span|img|br) id="(\d+)">|(</span>)|(<[^<>]*>)|([^<]+)')
_MARKS = re.compile(r"(\\[!-/:-@\[-`{-~])|([`*<\[\]])")
_CELL_MARKS = re.compile(r"(\\[!-/:-@\[-`{-~])|([`*<\[\]|])")
# Beginnings of a line that would make it a list, a heading, a quotation or a code block.
_BLOCK = re.compile(r"\A(?:\d{1,9}(?=[.)](?:\s|$))|(?=[-+#>=~]))")
DEEPEST = 100  # most marks that wait for their end; older ones are kept without one


@dataclass
class _Text:
    """A text: characters [begin, end) of the file, as HTML, and the marks that its tags stand for.

    `blocks` has the numbers of the line breaks (-1: the beginning) that `_BLOCK` follows.
    """

    begin: int
    end: int
    is_cell: bool
    marked: str = ""
    tags: list[list[str]] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)
    blocks: set[int] = field(default_factory=set)


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Return the HTML of each text, with numbered tags, and the names of parts that are left out.

    Raises:
        ValueError: If the content is not UTF-8.
    """
    _, texts, left = _read(content)
    return [text.marked for text in texts], sorted(left)


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the file with other texts; everything else is unchanged."""
    source, places, _ = _read(content)
    result, done = [], 0
    for place, text in zip(places, texts, strict=True):
        result += [source[done : place.begin], _restored(place, text)]
        done = place.end
    return "".join([*result, source[done:]]).encode()


def _read(content):
    """Return the source, its texts, and the names of parts that may have words but are left."""
    source = content.decode()
    skipped = 1 if source.startswith("\ufeff") else 0
    front = _FRONT_MATTER.match(source, skipped)
    left = {"front matter"} if front else set()
    skipped = front.end() if front else skipped
    lines = [(x.start(), x.group()) for x in _LINES.finditer(source, skipped)]
    environment: dict = {}
    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    tokens = parser.parse(source[skipped:], environment)
    references = environment.get("references", {})
    texts: list[_Text] = []
    reached: dict[int, int] = {}  # ends of the cells that were found, by line
    for before, token in zip([*tokens[:1], *tokens], tokens, strict=False):
        if token.type in ("fence", "code_block", "html_block"):
            left.add("html" if token.type == "html_block" else "code")
        if token.type == "inline" and token.map:
            is_cell = before.type in ("th_open", "td_open")
            spans = _spans(lines, token, before.type, reached)
            if spans:
                text = _taken_apart(source, spans, is_cell, references, left)
                if any(map(str.isalpha, re.sub("<[^<>]*>|&[a-z]+;", "", text.marked))):
                    texts.append(text)
    return source, texts, left


def _spans(lines, token, parent, reached):
    """Return (begin, end) of each line of a block's text in the source; [] if it is not found."""
    spans, first = [], token.map[0]
    for number, line in enumerate(token.content.split("\n"), first):
        core = line.strip()
        if number >= len(lines) or not core:
            return []
        start, raw = lines[number]
        raw = raw.rstrip()
        if parent in ("th_open", "td_open"):
            core = core if core in raw else core.replace("|", "\\|")
            at = raw.find(core, reached.get(number, 0))
            reached[number] = max(at + len(core), 0)
        else:  # of a heading, the last: closing number signs have no letters
            at = raw.rfind(core) if parent == "heading_open" else len(raw) - len(core)
            at = at if raw[max(at, 0) :].startswith(core) else -1
        if at < 0:
            return []
        spans.append((start + at, start + at + len(core)))
    return spans


def _taken_apart(source, spans, is_cell, references, left):
    """Return the text in some spans of the source, with its marks stored apart."""
    joined: list[str] = []
    places: list[int] = []  # the text without what lies between lines, and its places
    for begin, end in spans:
        joined.append(source[begin:end])
        places += range(begin, end + 1)
    whole = "\n".join(joined)

    def raw(begin, end):
        return source[
            places[begin] : places[end - 1] + 1 if whole[end - 1] != "\n" else places[end]
        ]

    items: list[list[str]] = []  # kind and source; kinds are text, point, open, close, break, br
    opened: list[int] = []  # indices of the items that may open an element
    done = 0
    for token in _TOKENS.finditer(whole):
        begin, end = token.span()
        del opened[:-DEEPEST]
        items.append(["text", whole[done:begin]])
        done, kind, mark = end, token.lastgroup, raw(begin, end)
        if kind == "break":
            is_hard = mark[:1] == "\\" or re.match(r" {2,}[\r\n]", mark)
            items.append(["br" if is_hard else "break", mark])
        elif kind == "open":
            opened.append(len(items))
            items.append(["point", mark])
        elif kind == "close":
            _close_link(items, opened, mark, references, left)
        elif kind == "emphasis":
            around = whole[begin - 1 : begin] if begin else "", whole[end : end + 1]
            _emphasis(items, opened, mark, *around)
        else:
            items.append(["text" if kind == "text" else "point", mark])
            if kind == "code":
                left.add("code")
    items.append(["text", whole[done:]])
    text = _Text(spans[0][0], spans[-1][1], is_cell)
    _number(text, items)
    return text


def _close_link(items, opened, mark, references, left):
    """Close the last bracket: a link, an image, which is kept whole, or only a bracket."""
    start = next((i for i in reversed(opened) if items[i][1].endswith("[")), None)
    if start is None:
        items.append(["point", mark])
        return
    del opened[opened.index(start) :]
    inside = "".join(raw for _, raw in items[start + 1 :])
    is_image = items[start][1] == "!["
    is_label = mark in ("]", "[]", "][]") and normalizeReference(inside) in references
    is_box = inside.strip().lower() in ("", "x")  # of a list of tasks
    if is_image or is_label or is_box:
        items[start:] = [["point", items[start][1] + inside + mark]]
        if is_image:
            left.add("images")
    else:
        items[start][0] = "open"
        items.append(["close", mark])


def _emphasis(items, opened, mark, before, after):
    """Add a mark of emphasis: it closes the last equal one, or may open, or is a point."""
    brackets = [i for i in opened if items[i][1].endswith("[")]
    start = next((i for i in reversed(opened) if items[i][1] == mark), None)
    is_inside = start is not None and start > (brackets[-1] if brackets else -1)
    if is_inside and before.strip():
        del opened[opened.index(start) :]
        items[start][0] = "open"
        items.append(["close", mark])
        return
    if after.strip():
        opened.append(len(items))
    items.append(["point", mark])


def _number(text, items):
    """Set the HTML of a text, and what its tags stand for."""
    parts: list[str] = []
    stack: list[int] = []
    last: int | None = -1  # number of the break that the next item follows
    for kind, raw in items:
        number = len(text.tags)
        if kind == "text":
            parts.append(html.escape(raw, quote=False))
            if last is not None and _BLOCK.match(raw):
                text.blocks.add(last)
            last = None if raw else last
        elif kind == "close":
            text.tags[stack.pop()][1] = raw
            parts.append("</span>")
        else:
            text.tags.append([raw, ""])
            is_break = kind in ("break", "br")
            if kind == "open":
                stack.append(number)
            text.breaks |= {number} if is_break else set()
            last = number if is_break else None
            name = {"open": "span", "br": "br"}.get(kind, "img")
            # A line break takes the place of a space, which the translation needs.
            parts.append(f'{" " if kind == "break" else ""}<{name} id="{number}">')
    text.marked = "".join(parts)


def _restored(place, translation):
    """Return a translation with the file's marks in place of the numbered tags."""
    parts: list[str] = []
    opened: list[str] = []
    marks = _CELL_MARKS if place.is_cell else _MARKS
    last: int | None = -1  # number of the break that the next part follows
    for number, closing, other, text in _NUMBERED.findall(translation):
        if number:
            mark, end = place.tags[int(number)]
            is_break = int(number) in place.breaks
            if is_break and parts and parts[-1].endswith(" "):
                parts[-1] = parts[-1].removesuffix(" ")
            parts.append(mark)
            opened += [end] if end else []
            last = int(number) if is_break else None
        elif closing:
            parts.append(opened.pop() if opened else "")
        elif other:
            parts.append(other)
        else:
            said = html.unescape(text)
            said = marks.sub(lambda x: x[1] or f"\\{x[2]}", said)
            if last is not None:
                said = said if last < 0 else said.lstrip(" ")
                if last not in place.blocks:
                    said = _BLOCK.sub(lambda x: f"{x[0]}\\", said)
            parts.append(said)
            last = None if said else last
    return "".join(parts)
