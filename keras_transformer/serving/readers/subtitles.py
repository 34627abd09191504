"""SubRip subtitles: their texts, and the same file with other texts.

Not parsed by the package srt, whose regular expressions take hours for some hundred kB of digits.
"""

from __future__ import annotations

import re

_TIMES = re.compile(r"\s*\d+:\d+:\d+[,.]\d+ *--> *\d+:\d+:\d+[,.]\d+.*")


def read(content: bytes) -> tuple[list[str], list[str]]:
    """Return the text of each subtitle, in one line; nothing is left out.

    Raises:
        ValueError: If there are no subtitles, or the content is not UTF-8.
    """
    lines, places = _read(content)
    return [" ".join(lines[begin:end]) for begin, end in places], []


def filled(content: bytes, texts: list[str]) -> bytes:
    """Return the file with another text in each subtitle, in as many lines as before."""
    lines, places = _read(content)
    result, done = [], 0
    for (begin, end), text in zip(places, texts, strict=True):
        result += [*lines[done:begin], _wrapped(text, end - begin)]
        done = end
    return "\n".join([*result, *lines[done:]]).encode()


def _read(content):
    """Return all lines, and where the text of each subtitle begins and ends."""
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
    return lines, places


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
