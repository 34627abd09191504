"""A mkdocstrings extension, named in `mkdocs.yml`: docstring sections as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

# Google style has no "Call arguments" section and no lines with several names.
SECTION = re.compile(
    r"^(Args|Attributes|Call arguments|Raises|Returns|Yields):\n((?:(?: .*)?\n)+)", re.MULTILINE
)
OF_NAMES = ("Args", "Attributes", "Call arguments", "Raises")


def as_markdown(docstring: str) -> str:
    """Return the docstring with each section as a title and a list of names, or a text."""
    return SECTION.sub(_section, docstring + "\n")


def _section(match: re.Match) -> str:
    title, body = match[1], textwrap.dedent(match[2]).strip("\n")
    if title in OF_NAMES:
        items: list[str] = []
        for line in body.splitlines():
            if line.startswith(" ") or not items or ": " not in items[-1]:
                items[-1:] = [" ".join([*items[-1:], line.strip()])]
            else:
                items.append(line)
        body = "\n".join(map(_item, items))
    title = "Arguments" if title == "Args" else title
    return f"**{title}**\n{{ .section }}\n\n{body}\n\n"


def _item(item: str) -> str:
    names, _, text = item.partition(": ")
    return f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {text}"


class Docstrings(griffe.Extension):
    """A griffe extension that rewrites each docstring when griffe loads it."""

    def on_instance(self, *, obj: griffe.Object, **options: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
