"""Readers of lines from any position of a file: text, TSV, JSON lines, TMX and Parquet.

`open_lines` returns the reader for a file; jobs over corpora, and commands that read one text per
line, use it. `parquet_rows` yields rows with all columns.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import reprlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.data.formats import ACCEPTED, JSON, OTHER, TSV, suffix_of
from keras_transformer.data.tmx import read_tmx
from keras_transformer.data.zstandard_file import ZstandardFile
from keras_transformer.system.extras import missing

Record = tuple[str, ...]

_BLOCK = 1 << 20


def open_lines(path: str, fields: tuple[str, ...]) -> LineFile:
    """Return the reader for a file, chosen by its suffix.

    Args:
        path: TSV (`.tsv`, `.tab`), JSON lines (`.jsonl`, `.ndjson`, `.json`), TMX (`.tmx`), Parquet
            (`.parquet`); or a text file, with one text per line, or two with a tab between them if
            there are two fields. All but Parquet may be compressed (`.gz`, `.zst`).
        fields: One or two fields to read. JSON lines: keys of the object, or of the object
            "translation" in it; Parquet: columns; TSV: the number of a column from 1 (any name
            means the first), or with two fields always the first two columns; TMX: language codes.

    Raises:
        ValueError: If the suffix is that of a format that is not supported.
    """
    suffix = suffix_of(path)
    require(suffix not in OTHER, "input", path, f"text, {ACCEPTED}; {suffix} is not read here")
    if suffix == ".parquet":
        return ParquetLines(path, fields)
    if suffix == ".tmx":
        return TMXUnits(path, fields)
    if suffix in TSV and len(fields) == 1:
        return TSVLines(path, fields)
    return (JSONLines if suffix in JSON else LineFile)(path, fields)


class LineFile:
    """A reader of the lines of a text file.

    The file stays open between calls: a compressed file would have to be read from its beginning
    again.

    Args:
        path: The file.
        fields: One or two fields, see `open_lines`; with two, a line has two texts with a tab
            between them.

    Attributes:
        offset: Position after the last record, in bytes of the uncompressed file.
    """

    def __init__(self, path: str, fields: tuple[str, ...]):
        self.path, self.fields, self.offset = path, fields, 0
        self._file: Any = None

    def records(self, first: int, offset: int, count: int | None = None) -> Iterator[Record]:
        """Yield the texts of each line, one per field.

        Args:
            first: Number of lines to skip.
            offset: Value of the attribute `offset` after these lines.
            count: Maximum number of lines to read; None: all.

        Raises:
            FileNotFoundError: If the file does not exist.
            ValueError: If a line cannot be read (the message names file and line), or the file is
                corrupt.
            ImportError: If the package that reads Parquet or `.zst` is not installed.
        """
        with self._readable():
            self._move_to(offset)
            for number in itertools.islice(itertools.count(first + 1), count):
                if not (line := self._file.readline()):
                    return
                self.offset += len(line)
                yield self._parsed(line, number)

    def close(self) -> None:
        """Close the file; the next call of `records` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextmanager
    def _readable(self):
        try:
            yield
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.path}: truncated or corrupt file ({error})") from error

    def _move_to(self, offset):
        """Move to an offset in bytes; a compressed file is read up to it."""
        if self._file is None or offset < self.offset:
            self.close()
            self._file, self.offset = unpacked(self.path), 0
        if _suffix(self.path) in _COMPRESSED:
            left = offset - self.offset
            while left and (block := self._file.read(min(left, _BLOCK))):
                left -= len(block)
        else:
            self._file.seek(offset)
        self.offset = offset

    def _text(self, line, number):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}, line {number}: invalid UTF-8 ({error})") from error
        return text.removesuffix("\n").removesuffix("\r")

    def _parsed(self, line: bytes, number: int) -> Record:
        """Return the text of a line; with two fields, the two texts that a tab separates."""
        text = self._text(line, number)
        if len(self.fields) == 1:
            return (text,)
        columns = tuple(text.split("\t", 2)[:2])
        if len(columns) < 2:
            raise ValueError(
                f"{self.path}, line {number}: expected two texts with a tab between them, "
                f"got {reprlib.repr(text)}"
            )
        return columns


class TSVLines(LineFile):
    """A reader of one column of a TSV file; see `LineFile`."""

    def _parsed(self, line: bytes, number: int) -> Record:
        """Return the column of a line that the field names."""
        (field,) = self.fields
        column = int(field) if field.isdecimal() else 1
        columns = self._text(line, number).split("\t")
        if len(columns) < column:
            raise ValueError(
                f"{self.path}, line {number}: expected {column} columns with tabs between them, "
                f"got {len(columns)}"
            )
        return (columns[column - 1],)


class TMXUnits(LineFile):
    """A reader of a translation memory (TMX), whose units count as lines; see `LineFile`.

    `offset` is a number of units. All units that have the languages are kept in memory.
    """

    def records(self, first: int, offset: int, count: int | None = None) -> Iterator[Record]:
        """Yield the texts of each unit; see `LineFile.records`."""
        if self._file is None:
            with self._readable(), unpacked(self.path) as file:
                self._units = read_tmx(file, self.path, *self.fields)
            self._file = io.BytesIO()  # not None: the units have been read
        for unit in self._units[first : None if count is None else first + count]:
            self.offset = first = first + 1
            yield unit


class JSONLines(LineFile):
    """A reader of a file with one JSON object per line; see `LineFile`."""

    def _parsed(self, line: bytes, number: int) -> Record:
        """Return the fields of the JSON object in a line."""
        where = f"{self.path}, line {number}"
        try:
            record = json.loads(self._text(line, number))
        except json.JSONDecodeError as error:
            raise ValueError(f"{where}: malformed JSON ({error})") from error
        except RecursionError as error:
            raise ValueError(f"{where}: JSON too deep") from error
        values = record if isinstance(record, dict) else {}
        if isinstance(values.get("translation"), dict):  # the form of Hugging Face's data sets
            values = {**values["translation"], **values}
        return tuple(_checked(values.get(field), field, where, record) for field in self.fields)


class ParquetLines(LineFile):
    """A reader of a Parquet file, whose rows count as lines; see `LineFile`.

    `offset` is a number of rows.
    """

    def records(self, first: int, offset: int, count: int | None = None) -> Iterator[Record]:
        """Yield the texts of each row; see `LineFile.records`."""
        with _parquet(self.path) as pyarrow:
            if self._file is None:
                self._file = pyarrow.parquet.ParquetFile(self.path)
            yield from self._rows(first, count)

    def _rows(self, first, count):
        """Yield the texts of `count` rows from the row `first` on; None: of all further rows."""
        metadata, names = self._file.metadata, self._file.schema_arrow.names
        for field in self.fields:
            if field not in names:
                raise ValueError(f"{self.path} has no column {field!r}; its columns are {names}")
        end = metadata.num_rows if count is None else min(first + count, metadata.num_rows)
        start = 0  # first row of the row group
        for group in range(metadata.num_row_groups):
            size = metadata.row_group(group).num_rows
            if start < end and start + size > first:
                self.offset = start
                options = dict(row_groups=[group], columns=list(self.fields), batch_size=8192)
                for batch in self._file.iter_batches(**options):
                    columns = [batch.column(field).to_pylist() for field in self.fields]
                    for values in zip(*columns, strict=True):
                        self.offset += 1
                        if first < self.offset <= end:
                            where = f"{self.path}, row {self.offset}"
                            named = zip(values, self.fields, strict=True)
                            yield tuple(_checked(*pair, where, values) for pair in named)
            start += size


@contextmanager
def _parquet(path):
    """Yield the package pyarrow; its errors in the context become ValueError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise missing("reading Parquet", "corpora") from error
    try:
        yield pyarrow
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: unreadable Parquet file ({error})") from error


def parquet_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as dicts.

    Raises:
        ValueError: If the file is not a Parquet file.
        ImportError: If pyarrow is not installed.
    """
    with _parquet(path) as pyarrow, pyarrow.parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=8192):
            yield from batch.to_pylist()


def one_line(text: str) -> str:
    """Return the text with line breaks replaced by spaces; byte tokens can produce line breaks."""
    return text.replace("\r", " ").replace("\n", " ")


def _checked(value: Any, field: str, where: str, record: Any) -> str:
    """Return a field's value; raise ValueError if it is not a text in valid Unicode."""
    if not isinstance(value, str):
        keys = f"; its fields are {sorted(record)}" if isinstance(record, dict) else ""
        raise ValueError(f"{where}: expected text in {field!r}, got {reprlib.repr(record)}{keys}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can hold half of a pair: "\ud83d"
        raise ValueError(f"{where}: {field!r} holds half of a surrogate pair ({error})") from error
    return value


def _suffix(path: str) -> str:
    return Path(path).suffix.lower()


def unpacked(path: str) -> Any:
    """Open a file in binary mode, decompressed if its name ends in `.gz` or `.zst`."""
    if _suffix(path) in _COMPRESSED:
        return _COMPRESSED[_suffix(path)](path)
    return open(path, "rb")


_COMPRESSED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".zst": lambda path: io.BufferedReader(ZstandardFile(path)),
}
