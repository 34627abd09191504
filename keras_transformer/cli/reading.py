"""Reading of texts for commands: from files of any format, or from stdin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.config import require

TextField = Annotated[
    str | None,
    typer.Option(
        help="The text: a field of JSON lines, a column of Parquet, the number of a column of TSV, "
        'or a language of TMX.  [default: "text", the first column, the source language]'
    ),
]
# Help of the options `--input`.
TEXT_FILE = "File of texts: one per line, TSV, JSON lines, TMX or Parquet; may be .gz or .zst"


def read_lines(
    path: Path | None, field: str | None = None, language: str | None = None
) -> Iterator[str]:
    """Yield the texts of a file of any format, or the lines of stdin if `path` is None.

    Args:
        path: The file.
        field: Field or column with the texts; None: see `formats.field_of`.
        language: Language of the texts in TMX; None: not known.

    Raises:
        ValueError: If a line is not valid UTF-8, or the field does not apply.
    """
    from keras_transformer.data.text_files import iterate_texts

    if path is not None:
        yield from iterate_texts(path, field, language)
        return
    require(field is None, "--text-field", field, "left out with stdin, which has a text per line")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"stdin, line {number}: invalid UTF-8 ({error})") from error
        yield text.rstrip("\r\n")


def source_code(translator: Any) -> str | None:
    """Return the short code of a translator's source language, such as "en"; None: not known."""
    return _short(translator.source_language)


def target_code(translator: Any) -> str | None:
    """Return the short code of a translator's target language, such as "de"; None: not known."""
    return _short(translator.target_language)


def _short(language):
    from keras_transformer.text.languages import short_code

    return language and short_code(language)


def read_whole_lines(path: Path | None) -> Iterator[str]:
    """Yield the lines of a file, such as JSON lines, or of stdin, as they are.

    Raises:
        ValueError: If a line is not valid UTF-8, or the file's format has no lines, such as TMX.
    """
    from keras_transformer.data.formats import OTHER, suffix_of
    from keras_transformer.data.text_files import iterate_lines

    if path is None:
        return read_lines(None)
    has_lines = suffix_of(path) not in (*OTHER, ".tmx", ".parquet")
    require(has_lines, "--input", str(path), "text, TSV or JSON lines")
    return iterate_lines(path)


def read_sides(translator: Any, source: Path, reference: Path | None) -> list[list[str]]:
    """Return the sources and the references of a test set.

    Args:
        translator: The translator; its languages select the texts of a file with both sides.
        source, reference: Files, see `text_files.read_pairs`.

    Raises:
        ValueError: If a file cannot be read, or no source has text.
    """
    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.text.languages import short_code

    languages = dict(
        source_language=short_code(translator.source_language or "en"),
        target_language=short_code(translator.target_language or "de"),
    )
    pairs = list(read_pairs(source, reference, **languages))
    require(any(x.strip() for x, _ in pairs), "--source", str(source), "a file with text")
    return [list(side) for side in zip(*pairs, strict=True)]
