"""White space in HTML: outside `pre`, a run becomes one space or is removed (CSS Text 3, 4.1)."""

from __future__ import annotations

import re
import unicodedata

WHITE = " \t\n\r\f"  # HTML does not count a no-break space
_SPACES = re.compile(f"[{WHITE}]+")
_STYLE = re.compile(
    r"\bwhite-space\s*+:\s*+(?P<value>[a-z-]++)", re.IGNORECASE
)  # searching for `style=` first could take quadratic time
_VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "link", "meta", "source", "track"])
_KEPT = ("pre", "pre-wrap", "pre-line", "break-spaces")


def folded(last: str | None, text: str, after_object: bool = False) -> str:
    """Return a text with folded white space; white space before the first word is kept.

    A line break between two wide characters, such as Chinese ones, is removed.

    Args:
        last: The last character of the paragraph so far; None: it has no word yet.
        text: The text that follows.
        after_object: Whether an object, such as an image, is between them.
    """
    lead = ""
    if last is None and not after_object:
        words = text.lstrip(WHITE)
        lead, text = text[: len(text) - len(words)], words
    last = "" if after_object else last or ""

    def space(match):
        begin, end = match.span()
        previous, following = text[begin - 1] if begin else last, text[end : end + 1]
        if not begin and last and last in WHITE:
            return ""
        return "" if "\n" in match[0] and _is_wide(previous) and _is_wide(following) else " "

    return lead + _SPACES.sub(space, text)


def _is_wide(letter):
    """Return whether a character is wide East Asian; Hangul, which has spaces, does not count."""
    is_wide = bool(letter) and unicodedata.east_asian_width(letter) in ("W", "F")
    return is_wide and "HANGUL" not in unicodedata.name(letter, "")


class KeptSpaces:
    """The open HTML elements with a CSS `white-space`; true if the innermost keeps white space."""

    def __init__(self) -> None:
        # For each: name, number of open elements of this name, whether it keeps white space.
        self._open: list[list] = []

    def __bool__(self) -> bool:
        """Return whether white space is kept here."""
        return bool(self._open) and self._open[-1][2]

    def note(self, kind: str, name: str, attributes: str) -> None:
        """Note a tag. `kind` is "open", "close", or "point" for a tag without an end tag."""
        if kind == "close":
            self._close(name)
        elif kind == "open" and name not in _VOID:
            self._note_start(name, attributes)

    def _note_start(self, name, attributes):
        style = _STYLE.search(attributes)
        if style:
            self._open.append([name, 1, style["value"].lower() in _KEPT])
        elif self._open and self._open[-1][0] == name:
            self._open[-1][1] += 1

    def _close(self, name):
        if self._open and self._open[-1][0] == name:
            self._open[-1][1] -= 1
            if not self._open[-1][1]:
                self._open.pop()
