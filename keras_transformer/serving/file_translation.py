"""Translate files, keeping their format: text, HTML, Markdown, XLIFF, subtitles, office."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import PurePath

from keras_transformer.config import require
from keras_transformer.serving.readers import Readers
from keras_transformer.serving.turns import Workers

Translated = tuple[bytes, list[str]]
Translate = Callable[[list[str], str], Awaitable[list[str]]]


async def translate_file(
    name: str, content: bytes, translate: Translate, readers: Readers, workers: Workers
) -> Translated:
    """Translate a file; return its new content, and names of parts that were not translated.

    Args:
        name: Name of the file; its suffix, one of `SUFFIXES`, gives the type.
        content: Content of the file.
        translate: Function that translates texts; takes the texts and their format, "text" or
            "html".
        readers: Readers of all other types.
        workers: Threads that decode text and HTML, and look for parts that are not translated.

    Raises:
        ValueError: If the suffix is unknown, or the content is not of that type.
        TooLargeError: If the file holds more text than the readers or the queue accept.
        ImportError: If the library for this type is missing.
    """
    suffix = PurePath(name).suffix.lower()
    require(suffix in SUFFIXES, "file", name, f"one of {', '.join(SUFFIXES)}")
    try:
        return await SUFFIXES[suffix](content, translate, readers, workers)
    except UnicodeDecodeError as error:
        raise ValueError(f"file {name!r} must be UTF-8: {error}") from error


# Parts of HTML that may have words and are not translated, by the names in `X-Untranslated`.
_LEFT_IN_HTML = {
    "attributes": re.compile(
        r"\s(?:alt|title|placeholder|aria-label)\s*+=\s*+[\"']?[^\"'>]*?[^\W\d_]", re.IGNORECASE
    ).search,
    "code": re.compile(r"<(?:pre|code|kbd|samp|var|textarea)[\s>]", re.IGNORECASE).search,
    "ruby": re.compile(r"<rt[\s>]", re.IGNORECASE).search,
}


async def _whole(kind, content, translate, readers, workers):
    text, left = await workers.run(_read, kind, content)
    (translation,) = await translate([text], kind)
    return translation.encode(), left


def _read(kind, content):
    text = content.decode("utf-8-sig")
    left = [name for name, pattern in _LEFT_IN_HTML.items() if kind == "html" and pattern(text)]
    return text, left


async def _in_parts(reader, content, translate, readers, workers):
    texts, left = await readers.texts(reader, content)
    return await readers.filled(reader, content, await translate(texts, "html")), left


_markdown, _xliff = partial(_in_parts, "markdown_text"), partial(_in_parts, "xliff")
_html, _office = partial(_whole, "html"), partial(_in_parts, "office")
SUFFIXES: dict[str, Callable[[bytes, Translate, Readers, Workers], Awaitable[Translated]]] = {
    ".txt": partial(_whole, "text"),
    ".html": _html,
    ".htm": _html,
    ".md": _markdown,
    ".markdown": _markdown,
    ".xlf": _xliff,
    ".xliff": _xliff,
    ".srt": partial(_in_parts, "subtitles"),
    ".vtt": partial(_in_parts, "subtitles"),
    ".docx": _office,
    ".pptx": _office,
    ".odt": _office,
    ".odp": _office,
}
