"""Readers of text: plain text, TSV, TMX, JSON lines, Parquet, Hugging Face datasets.

`read_pairs` returns a list of (source, target) pairs from any of these, and `iterate_pairs` yields
them one by one. `iterate_texts` and `read_texts` read single texts; `iterate_lines` and
`read_lines` read plain lines. Texts are not cleaned; to remove unsuitable pairs, see
`keras_transformer.data.cleaning`.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import reprlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from keras_transformer.data.formats import JSON, PAIRED, TSV, field_of, suffix_of
from keras_transformer.data.lines import open_lines, parquet_rows, unpacked
from keras_transformer.data.tmx import read_tmx

Pairs = list[tuple[str, str]]


@contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Open a file in binary mode, decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        ValueError: If a compressed file is truncated or corrupt; raised while it is read.
    """
    try:
        with unpacked(str(path)) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        kind = "zst" if str(path).lower().endswith(".zst") else "gzip"
        raise ValueError(f"{path}: truncated or corrupt {kind} file ({error})") from error


def iterate_lines(path: str | os.PathLike) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file one by one, for files too large for memory.

    Only a newline ends a line: other line separators may occur in a sentence, and would shift the
    lines of one of two parallel files. The carriage returns of a Windows file and a byte order mark
    at the beginning are removed.

    Args:
        path: The file; decompressed if its name ends in `.gz` or `.zst`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not valid UTF-8 (the message names file and line), or a
            compressed file is truncated or corrupt.
    """
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: invalid UTF-8 ({error})") from error
            yield text.removesuffix("\n").removesuffix("\r")


def iterate_texts(
    path: str | Path,
    field: str | None = None,
    language: str | None = None,
    option: str = "--text-field",
) -> Iterator[str]:
    """Yield the texts of a file one by one, in any format of `lines.open_lines`.

    Args:
        path: The file.
        field, language, option: The field to read, see `formats.field_of`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the field does not apply to the file, or a line cannot be read.
        ImportError: If the package that reads the format is not installed.
    """
    reader = open_lines(str(path), (field_of(path, field, language, option),))
    try:
        yield from (text for (text,) in reader.records(0, 0))
    finally:
        reader.close()


def read_lines(path: str | Path) -> list[str]:
    """Return all lines of a text file, including blank ones; see `iterate_lines`."""
    return list(iterate_lines(path))


def read_texts(path: str | Path) -> list[str]:
    """Return the texts of a file, without blank ones.

    The texts of a `.tsv` file are its first column, without the first line (the header).

    Args:
        path: The file, of any format of `lines.open_lines` but TMX; of JSON lines and Parquet, the
            field "text" is read.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file has no text or is a TMX file, or a line cannot be read.
        ImportError: If the package that reads the format is not installed.
    """
    lines = list(iterate_texts(path))
    if suffix_of(path) in TSV:
        lines = lines[1:]
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(f"{path} must have a line of text, got none")
    return lines


def read_pairs(
    source: Any,
    target: str | Path | None = None,
    *,
    source_language: str = "en",
    target_language: str = "de",
) -> Pairs:
    """Read parallel text. The format follows from the arguments:

    - two paths: two text files, or files of other formats but TSV with one side each (the field
      "text" of JSON lines and Parquet, the language of TMX); line i of one is the translation of
      line i of the other;
    - one path ending in `.tsv` or `.txt`: source, tab, target; further columns are ignored, there
      is no quoting and no header;
    - one path ending in `.tmx`: the translation units that have both languages, without inline
      mark-up;
    - one path ending in `.jsonl`, `.ndjson` or `.json`: one JSON object per line,
      `{"en": ..., "de": ...}`, `{"source": ..., "target": ...}` or
      `{"translation": {"en": ..., "de": ...}}`;
    - one path ending in `.parquet`: columns of these names;
    - a Hugging Face `datasets.Dataset` (streamed or not) with columns of these names.

    All files but Parquet may also be compressed, with the additional suffix `.gz` or `.zst`. Empty
    lines of TSV files and blank lines of JSON lines files are skipped.

    Args:
        source: A path, or a data set.
        target: Path of the target side; None: `source` has both sides.
        source_language: Key or TMX language of the source. In TMX, "en" matches "EN" and "en-US"
            too (RFC 4647, basic filtering); the first match of each unit is used.
        target_language: Key or TMX language of the target.

    Returns:
        A list of pairs (source, target).

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If two files differ in length, no pair has text on both sides, a line or record
            is malformed (the message names file and line), or a single path has another suffix.
        ImportError: If the package that reads Parquet or `.zst` is not installed.
    """
    chosen = dict(source_language=source_language, target_language=target_language)
    pairs = list(iterate_pairs(source, target, **chosen))
    if not any(x.strip() and y.strip() for x, y in pairs):
        names = "the data set" if hasattr(source, "column_names") else source
        names = names if target is None else f"{source} and {target}"
        raise ValueError(f"empty corpus: no pair with text on both sides in {names}")
    return pairs


def iterate_pairs(
    source: Any,
    target: str | Path | None = None,
    *,
    source_language: str = "en",
    target_language: str = "de",
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of `read_pairs` one by one, for corpora too large for memory.

    All pairs of a TMX file are kept in memory. An empty corpus raises no error.

    Args:
        source, target, source_language, target_language: See `read_pairs`.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If the arguments are invalid; when a malformed line or record is reached; at the
            end if two files differ in length.
        ImportError: If the package that reads Parquet or `.zst` is not installed.
    """
    if target is not None:
        if hasattr(source, "column_names"):
            raise ValueError(f"target must be left out when source is a data set, got {target!r}")
        return _pairs_of_two_files((source, target), (source_language, target_language))
    if hasattr(source, "column_names"):
        return _pairs_of_dataset(source, source_language, target_language)
    suffix = suffix_of(source)
    if suffix not in PAIRED:
        raise ValueError(
            f"source must end in one of {', '.join(PAIRED)} (or these and .gz or .zst) unless "
            f"target names the file of the other language; got {str(source)!r}"
        )
    return iter(_FORMATS[suffix](source, source_language, target_language))


def _pairs_of_two_files(
    paths: tuple[str | Path, str | Path], languages: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    for path in paths:
        if suffix_of(path) in TSV:
            raise ValueError(f"{path} has both sides of pairs: give it alone, without another file")
    return in_parallel(map(iterate_texts, paths, (None, None), languages), paths)


def in_parallel(
    sides: Iterable[Iterator[str]], paths: tuple[str | Path, str | Path]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of texts of two files.

    Args:
        sides: Iterators over the texts of the two files.
        paths: Names of the files in error messages.

    Raises:
        ValueError: At the end, if the numbers of texts differ.
    """
    sizes, (source, target) = [0, 0], paths
    for pair in itertools.zip_longest(*sides):
        sizes = [size + (line is not None) for size, line in zip(sizes, pair, strict=True)]
        if None not in pair:
            yield pair[0], pair[1]
    if sizes[0] != sizes[1]:
        shorter, longer = sorted(zip(sizes, (source, target), strict=True))
        raise ValueError(
            f"parallel files must have as many lines as each other: {source} has {sizes[0]}, "
            f"{target} has {sizes[1]}. {shorter[1]} is the shorter one: line {shorter[0] + 1} "
            f"of {longer[1]} is the first without a partner"
        )


def _pairs_of_tsv(path: str | Path, *_: str) -> Iterator[tuple[str, str]]:
    """Yield source and target of each line of a TSV file."""
    for number, line in enumerate(iterate_lines(path), 1):
        if not line:
            continue
        columns = line.split("\t", 2)
        if len(columns) < 2:
            raise ValueError(
                f"{path}, line {number}: expected two texts with a tab between them, "
                f"got {reprlib.repr(line)}; if it is one of two files, name the other, too"
            )
        yield columns[0], columns[1]


def _pairs_of_json_lines(path: str | Path, *languages: str) -> Iterator[tuple[str, str]]:
    """Yield source and target of each object in a file of JSON lines."""
    for number, line in enumerate(iterate_lines(path), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{path}, line {number}: malformed JSON, expected one object per line ({error})"
            ) from error
        yield _pair_of_record(record, f"{path}, line {number}", *languages)


def _pairs_of_parquet(path: str | Path, *languages: str) -> Iterator[tuple[str, str]]:
    for number, record in enumerate(parquet_rows(path), 1):
        yield _pair_of_record(record, f"{path}, row {number}", *languages)


def _pairs_of_dataset(dataset: Any, *languages: str) -> Iterator[tuple[str, str]]:
    if isinstance(dataset.column_names, Mapping):
        splits = list(dataset.column_names)
        raise ValueError(f"source must be one split of the data set, source[...] of {splits}")
    for number, record in enumerate(dataset):
        yield _pair_of_record(record, f"data set, row {number}", *languages)


def _pair_of_record(
    record: Any, where: str, source_language: str, target_language: str
) -> tuple[str, str]:
    """Return source and target of a record, under the keys that `read_pairs` names."""
    fields = record.get("translation", record) if isinstance(record, Mapping) else None
    if isinstance(fields, Mapping):
        for keys in ((source_language, target_language), ("source", "target")):
            source, target = (fields.get(key) for key in keys)
            if isinstance(source, str) and isinstance(target, str):
                return source, target
    raise ValueError(
        f"{where}: expected text under the keys {source_language!r} and {target_language!r}, or "
        f"'source' and 'target', or 'translation' with these inside; got {reprlib.repr(record)}"
    )


def _pairs_of_tmx(path: str | Path, source_language: str, target_language: str) -> Pairs:
    with opened(path) as file:
        units = read_tmx(file, path, source_language, target_language)
    return [(source, target) for source, target in units]


_FORMATS: dict[str, Callable[..., Iterable[tuple[str, str]]]] = {
    ".tsv": _pairs_of_tsv,
    ".txt": _pairs_of_tsv,
    ".tmx": _pairs_of_tmx,
    **dict.fromkeys(JSON, _pairs_of_json_lines),
    ".parquet": _pairs_of_parquet,
}
