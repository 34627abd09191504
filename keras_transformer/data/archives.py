"""Reading of tar and zip archives, with a limit of the size of each unpacked file."""

from __future__ import annotations

import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator

from keras_transformer.config import require

MOST_BYTES = 1 << 28  # maximum size of one unpacked file

# Exceptions that the module zipfile raises for a damaged archive.
_BROKEN = (zipfile.BadZipFile, EOFError, RuntimeError, struct.error, zlib.error, lzma.LZMAError)


def read_tar(path: str | os.PathLike) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file in a tar file, compressed or not.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a tar file, is truncated, or a file in it has more than
            `MOST_BYTES` bytes.
    """
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and (file := archive.extractfile(member)):
                    _check(path, member.name, member.size)
                    yield member.name, file.read()
            while archive.fileobj.read(1 << 20):  # gzip checks its checksum at the end of the file
                pass
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        _raise_unless_damaged(error)
        raise ValueError(f"{path} must be a complete tar file: {error}") from error


def read_zip(path: str | os.PathLike, pattern: str) -> Iterator[tuple[re.Match, bytes]]:
    """Yield the match and the content of the files in a zip file whose names match a pattern.

    Args:
        path: The zip file.
        pattern: Regular expression that is searched in the names; files come sorted by name.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a zip file, is damaged, or one of the files has more than
            `MOST_BYTES` bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if match := re.search(pattern, name):
                    _check(path, name, archive.getinfo(name).file_size)
                    yield match, archive.read(name)
    except (*_BROKEN, OSError) as error:
        _raise_unless_damaged(error)
        raise ValueError(f"{path} must be a complete zip file: {error}") from error


def _raise_unless_damaged(error):
    """Raise an error of the file system again, not one of a damaged archive.

    The module bz2 reports a damaged archive as an OSError, too, but without a number.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error


def _check(path, name, size):
    require(
        size <= MOST_BYTES, f"{path}: the size of {name}", size, f"at most {MOST_BYTES:,} bytes"
    )
