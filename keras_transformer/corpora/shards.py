"""Inputs of a job: their files, counted and checked, and the shards that they are split into."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_transformer.data.lines import Record, open_lines


@dataclass(frozen=True)
class Input:
    """A file of a job.

    Args:
        path: The file.
        fields: Names of the fields to read; see `lines.open_lines`.
        size: Size in bytes.
        modified: Time of the last change, in nanoseconds.
        sha256: Hash of the bytes.
        lines: Number of lines.
        offsets: `LineFile.offset` at the beginning of each shard, see `data.lines`.
    """

    path: str
    fields: tuple[str, ...]
    size: int
    modified: int
    sha256: str
    lines: int
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Shard:
    """A block of lines of one file, or of two parallel files.

    Args:
        number: Index among all shards of the job, from 0.
        first: Index of its first line in the file, from 0.
        lines: Number of lines.
        places: (path, fields, offset) of the file, or of each of the two parallel files.
    """

    number: int
    first: int
    lines: int
    places: tuple[tuple[str, tuple[str, ...], int], ...]

    @property
    def name(self) -> str:
        """Name of the output file, without the suffix; names sort in the order of the shards."""
        return f"shard-{self.number:08d}"

    @classmethod
    def of(cls, values: dict[str, Any]) -> Shard:
        """Return a shard from the JSON values of its fields, in which tuples became lists."""
        places = tuple((path, tuple(fields), offset) for path, fields, offset in values["places"])
        return cls(**{**values, "places": places})

    def __str__(self):
        paths = " and ".join(path for path, *_ in self.places)
        return f"{self.name} (lines {self.first + 1} to {self.first + self.lines} of {paths})"


class ShardReader:
    """A reader of the lines of shards, which keeps the files of the last shard open."""

    def __init__(self):
        self._files = {}

    def records(self, shard: Shard) -> list[Record]:
        """Return the texts of each line, those of parallel files in one tuple.

        Raises:
            ValueError: If a line cannot be read, or the file has fewer lines than when it was
                counted.
        """
        wanted = [(path, fields) for path, fields, _ in shard.places]
        for key in set(self._files) - set(wanted):
            self._files.pop(key).close()
        columns = []
        for path, fields, offset in shard.places:
            if (path, fields) not in self._files:
                self._files[path, fields] = open_lines(path, fields)
            rows = self._files[path, fields].records(shard.first, offset, shard.lines)
            columns.append(list(rows))
            if len(columns[-1]) != shard.lines:
                raise ValueError(
                    f"{path} has changed: it ends at line {len(columns[-1])} of {shard}"
                )
        return [sum(parts, ()) for parts in zip(*columns, strict=True)]


def files_of(paths: Sequence[str | os.PathLike] | str | os.PathLike, name: str) -> list[str]:
    """Return the absolute paths of files; a folder stands for the files directly in it, sorted.

    Files of a folder whose names begin with "." or "_" are left out, and so are `.json` files: in
    the output folder of another job, they are notes about the shards.

    Args:
        paths: A path or several, of files or folders.
        name: Name of the argument in error messages.

    Raises:
        ValueError: If there are no files.
        FileNotFoundError: If a path does not exist.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    files: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = [x for x in sorted(path.iterdir()) if x.is_file() and _is_input(x)]
            if not inside:
                raise ValueError(f"{name} must have files, got the folder {path} without any")
            files += map(os.path.abspath, inside)
        elif path.exists():
            files.append(os.path.abspath(path))
        else:
            raise FileNotFoundError(f"{name}: there is no file or folder {path}")
    if not files:
        raise ValueError(f"{name} must be one or more files or folders, got none")
    return files


def _is_input(path):
    return path.name[0] not in "._" and path.suffix != ".json"


def counted(path: str, fields: tuple[str, ...], shard_lines: int) -> Input:
    """Read a file, check each line, and return its `Input`.

    Raises:
        ValueError: If a line cannot be read (names file and line).
    """
    status = os.stat(path)
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    reader, offsets, lines = open_lines(path, fields), [0], 0
    for _ in reader.records(0, 0):
        lines += 1
        if lines % shard_lines == 0:
            offsets.append(reader.offset)
    reader.close()
    count = -(-lines // shard_lines)  # the last offset may be the end of the file
    places = tuple(offsets[:count])
    return Input(path, fields, status.st_size, status.st_mtime_ns, sha256, lines, places)


def split(sides: Sequence[Sequence[Input]], shard_lines: int) -> Iterator[Shard]:
    """Yield the shards of the inputs, in order; each shard is within one file.

    Args:
        sides: The inputs; two lists for parallel files.
        shard_lines: Number of lines of a shard; the last one of a file may have fewer.

    Raises:
        ValueError: If parallel files differ in their number of lines.
    """
    number = 0
    for together in zip(*sides, strict=True):
        lines = together[0].lines
        for other in together[1:]:
            if other.lines != lines:
                raise ValueError(
                    f"parallel files must have as many lines as each other: {together[0].path} "
                    f"has {lines}, {other.path} has {other.lines}"
                )
        for i, first in enumerate(range(0, lines, shard_lines)):
            places = tuple((x.path, x.fields, x.offsets[i]) for x in together)
            yield Shard(number, first, min(shard_lines, lines - first), places)
            number += 1
