"""Writing files and folders so that a kill or a full disk leaves the old ones whole."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

LOCK = ".lock"
# `scratch`'s folders, and those of the versions that called `tempfile` for them.
_SCRATCH = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.partial|\.saving\.[a-z0-9_]{8}")
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
# A system error inside the message of a library in Rust or of HDF5.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)")


def check_free(path: str | os.PathLike, overwrite: bool) -> None:
    """Raises FileExistsError if there is something at `path`, unless it may be overwritten."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: choose another, or replace it (--overwrite; overwrite=True in Python)"
        )


@contextlib.contextmanager
def replacing(path: str | os.PathLike, *, lose_others: bool = True) -> Iterator[Path]:
    """Yields a temporary path beside `path`; on success it takes the place of `path`.

    What is written there may be a file or a folder. If the body raises, it is removed, as are
    folders that were made for it, and what was at `path` is untouched. The temporary name keeps
    the suffix, which some writers look at.

    Args:
        path: the file or folder.
        lose_others: whether files of the old folder that the new one does not have may be lost.

    Raises:
        FileExistsError: if there are such files, and they may not.
        OSError: if the disk is full; it names `path`.
    """
    path = Path(path)
    with _made(path.parent), scratch(path) as room:
        temporary, old = room / path.name, _old(room, path.name)
        yield temporary
        if temporary.exists():
            _open_to_others(temporary, room.stat().st_mode)
        if not lose_others:
            _check_others(path, temporary)
        if path.is_dir() and temporary.exists():
            # A folder cannot be replaced in one step: the old one steps aside first.
            os.replace(path, old)
            try:
                os.replace(temporary, path)
            except OSError:
                os.replace(old, path)
                raise
        else:
            os.replace(temporary, path)


@contextlib.contextmanager
def scratch(path: str | os.PathLike) -> Iterator[Path]:
    """Yields an empty folder beside `path` to prepare its content in, and removes it at the end.

    Such folders of processes that were killed are removed first. A process holds a lock inside
    its own, which the system releases at its death.

    Raises:
        OSError: if the disk is full; it names `path`.
    """
    path = Path(path)
    remove_stale(path.parent, path.name)
    lock = None
    while lock is None:  # another process may take a new folder for a stale one
        room = path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"
        room.mkdir()
        with contextlib.suppress(FileNotFoundError):
            lock = _lock(room / f"{path.name}{LOCK}")
    try:
        yield room
    except Exception as error:
        if (number := _full_disk(error)) is None:
            raise
        raise OSError(
            number,
            f"{os.strerror(number)}: {path} could not be written; what was there before is whole",
        ) from error
    finally:
        lock.release()
        shutil.rmtree(room, ignore_errors=True)


def remove_stale(folder: str | os.PathLike, name: str | None = None) -> None:
    """Removes what killed processes left of `scratch` in a folder; of `name` only if given."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for found in filter(None, map(_SCRATCH.fullmatch, names)):
        target, room = found["name"] or "saving", Path(folder, found.string)
        if name not in (None, target):
            continue
        with contextlib.suppress(OSError):  # another user's, say, or another process was faster
            lock = _lock(room / f"{target}{LOCK}")
            if not isinstance(lock, FileLock):
                continue
            # A kill between the two moves of `replacing`: the new folder is whole.
            if _old(room, target).exists() and not Path(folder, target).exists():
                os.replace(room / target, Path(folder, target))
            lock.release()
            shutil.rmtree(room, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[None]:
    """Makes a folder this process's own for a while, and removes what killed processes left there.

    The system releases the lock when the process ends, however it ends.

    Raises:
        ValueError: if another process has it.
    """
    folder = Path(folder)
    path = folder / LOCK
    with _made(folder):
        lock = _lock(path)
        if lock is None:
            owner = ""
            with contextlib.suppress(OSError):  # Windows lets nobody read it
                owner = (number := path.read_text()) and f" (process {number})"
            raise ValueError(
                f"{folder} is in use by another run{owner}: wait for its end, or choose another "
                "folder"
            )
        try:
            with contextlib.suppress(OSError):
                path.write_text(str(os.getpid()))
            for place in (folder, *filter(Path.is_dir, folder.iterdir())):
                remove_stale(place)
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows keeps it until it is closed
                path.unlink()
            lock.release()


def removed(*paths: str | os.PathLike) -> None:
    """Removes files and folders, those that there are."""
    for path in map(Path, paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Makes a folder and those above it; what is empty of them at the end is removed."""
    made = [x for x in (folder, *folder.parents) if not x.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            for x in made:
                x.rmdir()


class _NoLock:
    """Where the file system has no locks."""

    def release(self) -> None:
        """Nothing."""


def _lock(path: Path) -> FileLock | _NoLock | None:
    """The lock, held; None if another has it."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    except NotImplementedError:
        return _NoLock()
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return _NoLock()
        raise
    return lock


def _check_others(path, temporary):
    for other in sorted(path.rglob("*")):
        name = other.relative_to(path)
        if not Path(temporary, name).exists():
            raise FileExistsError(
                f"{path} holds {name}, which would be lost: move it, or choose another folder"
            )


def _old(room, name):
    return room / f"{name}.old"


def _open_to_others(path, folder_mode):
    """Gives files that were made for their owner alone, as by `tempfile`, the umask's modes."""
    if os.name != "posix":
        return
    for x in (path, *path.rglob("*")):
        if not x.is_symlink():
            usual = folder_mode & (0o777 if x.is_dir() else 0o666)
            mode = x.stat().st_mode & 0o7777
            if mode | usual != mode:
                x.chmod(mode | usual)


def _full_disk(error: Exception) -> int | None:
    """The system's number of an error that says that the disk or the user's share of it is full."""
    number = getattr(error, "errno", None)
    if number is None and (found := _SYSTEM_ERROR.search(str(error))):
        number = int(found[1] or found[2])
    return number if number in _FULL else None


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes `value` as indented JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: str | os.PathLike) -> Any:
    """Reads JSON; ValueError names the file when it is broken."""
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # of JSON or of UTF-8
        raise ValueError(f"{path} is not valid JSON: {error}") from error
