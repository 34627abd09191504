"""HTML elements from Python values. All text is escaped, because only elements are not text."""

from __future__ import annotations

import html
from typing import Any

_EMPTY = {"meta", "br"}


class Element(str):
    """The HTML of an element, or of several. Made by `element` and `joined` only."""


def element(name: str, /, *children: Any, **attributes: Any) -> Element:
    """Return an element.

    Args:
        name: Its name, such as "td".
        children: Elements, and other values, which are escaped; None: no child.
        attributes: Values by name; True has no value; None and False leave the attribute out. In a
            name, "_" at the end is dropped ("class_"), other ones become "-" ("http_equiv").
    """
    shown = "".join(
        f" {x.rstrip('_').replace('_', '-')}" + ("" if y is True else f'="{html.escape(str(y))}"')
        for x, y in attributes.items()
        if y is not None and y is not False
    )
    end = "" if name in _EMPTY else f"</{name}>"
    return Element(f"<{name}{shown}>{joined(*children)}{end}")


def joined(*children: Any) -> Element:
    """Return elements and escaped text in a row."""
    present = (x for x in children if x is not None)
    return Element("".join(x if isinstance(x, Element) else html.escape(str(x)) for x in present))


def style(css: str) -> Element:
    """Return a style sheet. Its text is not escaped: it must be the program's own.

    Raises:
        ValueError: If it could end the element.
    """
    if "</" in css:
        raise ValueError(f"css must be without '</', got {css!r:.80}")
    return Element(f"<style>{css}</style>")
