"""Subtitle files, SubRip and WebVTT: read their texts, and write the file with other texts.

A text is what one speaker says in one subtitle, or a line of a song. Marks around it (dashes of
speakers, musical notes, positions) are stored apart; tags inside it (italics, colours, voices)
become HTML tags.

The package srt is not used: its regular expressions take hours for some hundred kB of digits.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_TIME = r"(?:\d++:)?\d++:\d++[,.]\d++"
_TIMES = re.compile(rf"\s*+{_TIME} *--> *{_TIME}.*")
_TOKENS = re.compile(
    r"(?P<tag></?(?:[ibus]|font|c|v|lang|ruby|rt)(?:[\s.][^<>]*+)?+>|<[\d:.]++>|\{\\?[^{}\n]*+\})"
    r"|(?P<mark>[♩♪♫♬]+)|(?P<dash>[-–—‐]|>>+)|(?P<space>\s+|\\[Nnh])",
    re.IGNORECASE,
)
# Positions and similar codes: they apply to the whole subtitle, wherever they are in it.
_WHOLE = re.compile(r"\{\\?(?!\\?[ibus][01]\})", re.IGNORECASE)
_SPEAKER = re.compile(r"(?:<[^<>]*+>|\{[^{}]*+\}|\s)*+(?:[-–—‐](?!-)|>>|[♩♪♫♬])")
_SONG_END = re.compile(r"[♩♪♫♬](?:<[^<>]*+>|\s)*+\Z")
_NUMBERED = re.compile(r'<(?:span|img) id="(\d+)">|(</span>)|(<[^<>]*>)|([^<]+)')


@dataclass
class _Text:
    """A text: its lines [begin, end) of the file, and the marks and tags that are stored apart."""

    begin: int
    end: int
    lead: str = ""  # marks before the text
    marked: str = ""  # the text as HTML with numbered tags
    trail: str = ""  # marks after it
    tags: list[tuple[str, str]] = field(default_factory=list)  # opening and closing tag, by number


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Return the HTML of each text, in one line, with numbered tags.

    The second value, the names of parts that are left out, is an empty list.

    Raises:
        ValueError: If there are no subtitles, or the content is not UTF-8.
    """
    _, texts, _ = _read(content)
    return [text.marked for text in texts], []


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the file with other texts, each in at most as many lines as before."""
    lines, places, is_web = _read(content)
    result, done = [], 0
    for place, text in zip(places, texts, strict=True):
        whole = place.lead + _restored(place, text, is_web) + place.trail
        result += [*lines[done : place.begin], _wrapped(whole, place.end - place.begin)]
        done = place.end
    return "\n".join([*result, *lines[done:]]).encode()


def _read(content):
    """Return all lines, the texts, and whether the file is WebVTT, whose texts are HTML-escaped."""
    lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    is_web = lines[0].startswith("WEBVTT")
    times = [i for i, line in enumerate(lines) if "-->" in line and _TIMES.fullmatch(line)]
    if not times:
        raise ValueError(f"file must hold SubRip or WebVTT subtitles, got {lines[0]!r:.60}")
    texts = []
    for begin, end in zip(times, [*times[1:], len(lines)], strict=True):
        if is_web:  # an empty line ends a subtitle
            end = next((i for i in range(begin + 1, end) if not lines[i].strip()), end)
        elif end < len(lines) and lines[end - 1].strip().isdecimal():
            end -= 1  # the number of the next subtitle
        while end > begin + 1 and not lines[end - 1].strip():
            end -= 1
        starts = [i for i in range(begin + 1, end) if _begins(lines, i, begin + 1)]
        for first, last in zip(starts, [*starts[1:], end], strict=False):  # `starts` may be empty
            text = _taken_apart(lines, first, last, is_web)
            if any(map(str.isalpha, re.sub("<[^<>]*>|&[a-z]+;", "", text.marked))):
                texts.append(text)
    return lines, texts, is_web


def _begins(lines, i, first):
    """Return whether a line begins a text: the first line, another speaker, or a line of a song."""
    return i == first or bool(_SPEAKER.match(lines[i])) or bool(_SONG_END.search(lines[i - 1]))


def _taken_apart(lines, begin, end, is_web):
    """Return the text in lines [begin, end), with its marks and tags stored apart."""
    source = "\n".join(lines[begin:end])
    tokens, place, has_words = [], 0, False
    for token in _TOKENS.finditer(source):
        if token.start() > place:
            tokens.append(("text", source[place : token.start()]))
        kind = token.lastgroup or "text"
        if kind == "tag" and _WHOLE.match(token[0]):
            kind = "mark"
        elif kind == "dash":  # the mark of a speaker, if only tags precede it
            kind = "text" if has_words or token.start() > place else "mark"
        has_words = has_words or kind == "text" or token.start() > place
        tokens.append((kind, token[0]))
        place = token.end()
    tokens.append(("text", source[place:]))
    words = [i for i, (kind, raw) in enumerate(tokens) if kind == "text" and raw]
    first, last = (words[0], words[-1] + 1) if words else (len(tokens), len(tokens))
    low = 1 + max((i for i in range(first) if tokens[i][0] == "mark"), default=-1)
    marks = (i for i in range(last, len(tokens)) if tokens[i][0] == "mark")
    high = min(marks, default=len(tokens))
    while low < first and tokens[low][0] == "space":
        low += 1
    while high > last and tokens[high - 1][0] == "space":
        high -= 1
    lead, trail = ("".join(raw for _, raw in x) for x in (tokens[:low], tokens[high:]))
    text = _Text(begin, end, lead, "", trail)
    text.marked = _as_html(tokens[low:high], text.tags, is_web)
    return text


def _as_html(tokens, tags, is_web):
    """Return tokens as HTML with numbered tags, and append the original tags to `tags`."""
    parts: list[str] = []
    opened: list[tuple[str, int]] = []
    for kind, raw in tokens:
        if kind == "text":
            parts.append(raw if is_web else html.escape(raw, quote=False))
        elif kind == "space":
            parts.append(" ")
        elif opened and kind == "tag" and _closes(opened[-1][0], raw):
            tags[opened.pop()[1]][1] = raw
            parts.append("</span>")
        else:
            number = len(tags)
            tags.append([raw, ""])
            is_opening = kind == "tag" and re.match(r"<[a-z]|\{\\?[ibus]1", raw, re.IGNORECASE)
            if is_opening:
                opened.append((raw, number))
            parts.append(f'<span id="{number}">' if is_opening else f'<img id="{number}">')
    return re.sub(" +", " ", "".join(parts))


def _closes(opening, tag):
    names = re.findall(r"^[<{]\\?([a-z]+)", opening.lower())
    end = re.match(r"(?:</([a-z]+)|\{\\?([ibus])0\})", tag, re.IGNORECASE)
    return end is not None and names == [(end[1] or end[2]).lower()]


def _restored(place, translation, is_web):
    """Return the translation with the file's tags in place of the numbered ones."""
    parts, opened = [], []
    for number, closing, other, text in _NUMBERED.findall(translation):
        if number:
            tag, end = place.tags[int(number)]
            parts.append(tag)
            if end:
                opened.append(end)
        elif closing:
            parts.append(opened.pop() if opened else "")
        else:
            parts.append(other or (text if is_web else html.unescape(text)))
    return "".join(parts)


def _wrapped(text, lines):
    """Wrap the text to at most `lines` lines of about equal length; tags are not broken."""
    if lines == 1:
        return text
    tag = r"<[^<>]*>|\{[^{}]*\}"
    words = [(x, len(re.sub(tag, "", x))) for x in re.findall(rf"(?:{tag}|\S)+", text)]
    target = sum(width + 1 for _, width in words) / lines
    result: list[list[str]] = [[]]
    length = 0.0
    for word, width in words:
        if result[-1] and length + width / 2 > target and len(result) < lines:
            result.append([])
            length = 0
        result[-1].append(word)
        length += width + 1
    return "\n".join(map(" ".join, result))
