"""File formats, recognized by suffix, and the field of a file that a command reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keras_transformer.config import require

JSON = (".jsonl", ".ndjson", ".json")
OTHER = frozenset(
    (
        *(".csv", ".xml", ".xlf", ".xliff", ".html", ".htm", ".docx", ".pptx", ".xlsx"),
        *(".odt", ".odp", ".ods", ".pdf", ".srt", ".vtt", ".ass"),
    )
)
TSV = (".tsv", ".tab")
PAIRED = (".tsv", ".txt", ".tmx", *JSON, ".parquet")  # suffixes of files with both sides
COMPRESSED = (".gz", ".zst")
ACCEPTED = "TSV, JSON lines, TMX or Parquet"


def field_of(
    path: str | Path, field: str | None, language: str | None = None, option: str = "--text-field"
) -> str:
    """Return the field of a file to read, for `lines.open_lines`.

    Args:
        path: The file.
        field: The field that the user chose; None: "text" for JSON lines and Parquet, the first
            column for TSV, `language` for TMX. Must be None for plain text, for which "text" is
            returned and has no effect.
        language: Language code, used for TMX without a `field`; None: unknown.
        option: Name of the option in error messages.

    Raises:
        ValueError: If the field does not apply to the file's format, or a TMX file has neither
            field nor language.
    """
    suffix = suffix_of(path)
    if suffix == ".tmx":
        accepted = "a language of the file, such as en"
        require(bool(field or language), option, field, accepted)
        return field or str(language)
    if field is None:
        return "1" if suffix in TSV else "text"
    if suffix in TSV:
        is_column = field.isdecimal() and int(field) > 0
        require(is_column, option, field, f"the number of a column of {path}, from 1")
    elif suffix not in (*JSON, ".parquet"):
        raise ValueError(
            f"{option} names a field of JSON lines, a column of Parquet or TSV, or a language of "
            f"TMX, got {field!r} for {path}, which has lines of text: leave it out"
        )
    return field


def has_fields(path: str | Path) -> bool:
    """Return whether the suffix of a file is that of a format with several fields per record."""
    return suffix_of(path) in (*JSON, *TSV, ".tmx", ".parquet")


def check_sides(option: str, paths: Sequence[str | Path]) -> None:
    """Check the files of parallel text in an option: one file with both sides, or two files.

    Args:
        option: Name of the option, for the error message.
        paths: The files, one or more.

    Raises:
        ValueError: If there are more than two, or there is only one file and it has one side.
    """
    if len(paths) > 2:
        raise ValueError(f"{option} takes one file or two, got {len(paths)}")
    if len(paths) == 1 and suffix_of(paths[0]) not in PAIRED:
        raise ValueError(
            f"{option} names one side only, {paths[0]}: give it twice, for source and target, or "
            f"name a file of both sides ({', '.join(PAIRED)}, also .gz or .zst)"
        )


def require_lines(path: str | Path, accepted: str) -> None:
    """Raise ValueError if a file's suffix is that of a known format other than plain text or TSV.

    Args:
        path: The file.
        accepted: The accepted formats, for the error message.
    """
    suffix = suffix_of(path)
    has_lines = suffix not in (*OTHER, *JSON, ".tmx", ".parquet")
    require(has_lines, "input", str(path), f"{accepted}; {suffix} is not read here")


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file in lower case, without ".gz" or ".zst": ".txt" of "A.TXT.gz"."""
    name = str(path).lower()
    for compressed in COMPRESSED:
        name = name.removesuffix(compressed)
    return Path(name).suffix
