"""Reading of tar and zip archives, with limits of the unpacked sizes."""

from __future__ import annotations

import contextlib
import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from keras_transformer.config import require

MOST_BYTES = 1 << 28  # maximum bytes of a file that `read_tar` or `read_zip` reads into memory
MOST_FILES = 1000  # maximum number of files that `extracted` unpacks
# `extracted` unpacks at most MOST_TIMES * (bytes of the zip file) + MORE_BYTES bytes. Weights
# hardly compress, so a zip file of a model needs much less.
MOST_TIMES, MORE_BYTES = 20, 1 << 26

# Exceptions that the module zipfile raises for a damaged or encrypted archive.
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
    """Yield the match and the content of each file in a zip file, if its name matches a pattern.

    The files are in the order of their names.

    Args:
        path: The zip file.
        pattern: Regular expression; it may match any part of a name (`re.search`).

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a zip file, is damaged or encrypted, or one of the matching files
            has more than `MOST_BYTES` bytes.
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
    """Raise the error again if it comes from the file system, and not from a damaged archive.

    The module bz2 raises OSError for a damaged archive, too, but without an `errno`.
    """
    if isinstance(error, OSError) and error.errno is not None:
        raise error


def _check(path, name, size):
    require(
        size <= MOST_BYTES, f"{path}: the size of {name}", size, f"at most {MOST_BYTES:,} bytes"
    )


def is_zip(path: str | os.PathLike) -> bool:
    """Return whether a path is that of an existing file whose name ends in ".zip"."""
    return Path(path).suffix.lower() == ".zip" and Path(path).is_file()


@contextlib.contextmanager
def extracted(path: str | os.PathLike) -> Iterator[Path]:
    """Extract a zip file to a temporary folder, yield the folder, and remove it at the end.

    If the archive has one folder at its top and nothing beside it, that folder is yielded. A
    FileNotFoundError or ValueError from the `with` block names the zip file in place of the
    temporary folder.

    Raises:
        FileNotFoundError: If the zip file does not exist.
        ValueError: If it is not a zip file, is damaged, has no file or more than `MOST_FILES`,
            unpacks to more bytes than `MOST_TIMES` and `MORE_BYTES` allow or than are free on the
            disk, or contains a name twice, a link, an encrypted file or a path that leads out of
            the folder.
    """
    path = Path(path)
    with tempfile.TemporaryDirectory() as room:
        try:
            with zipfile.ZipFile(path) as archive:
                _extract(archive, path, Path(room))
        except (*_BROKEN, NotImplementedError, OSError) as error:
            _raise_unless_damaged(error)
            raise ValueError(f"{path} must be a complete zip file: {error}") from error
        entries = [*Path(room).iterdir()]
        is_one = len(entries) == 1 and entries[0].is_dir()
        try:
            yield entries[0] if is_one else Path(room)
        except (FileNotFoundError, ValueError) as error:
            kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
            raise kind(str(error).replace(room, str(path))) from error


def _extract(archive, path, room):
    """Extract the files of a zip archive into an empty folder, after checking all of them."""
    # macOS adds a folder `__MACOSX` of metadata.
    files = [x for x in archive.infolist() if not x.is_dir()]
    files = [x for x in files if not x.filename.startswith("__MACOSX/")]
    count, size = len(files), sum(x.file_size for x in files)
    require(0 < count <= MOST_FILES, f"files in {path}", count, f"from 1 to {MOST_FILES:,}")
    most = min(MOST_TIMES * path.stat().st_size + MORE_BYTES, shutil.disk_usage(room).free)
    require(size <= most, f"unpacked bytes of {path}", size, f"at most {most:,}")
    names = {x.filename for x in files}
    require(len(names) == count, f"files in {path}", count, "files with different names")
    for file in files:
        name, place = file.filename, PurePosixPath(file.filename)
        is_inside = not place.is_absolute() and not {"..", ""} & {*place.parts}
        is_inside &= not re.search(r"[\\:\0]", name) and not {*map(str, place.parents)} & names
        require(is_inside, f"a file in {path}", name, "a path inside the folder")
        mode = file.external_attr >> 16
        is_plain = stat.S_IFMT(mode) in (0, stat.S_IFREG) and not file.flag_bits & 1
        require(is_plain, f"a file in {path}", name, "a plain file, no link and not encrypted")
    for file in files:
        target = room / file.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(file) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
