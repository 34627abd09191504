"""Write files and folders so that a killed process or a full disk leaves the old ones intact."""

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
# The folders of `scratch`, and those that older versions made with `tempfile`.
_SCRATCH = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.partial|\.saving\.[a-z0-9_]{8}")
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}
# A system error number in the message of a Rust library or of HDF5.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)")


def check_free(path: str | os.PathLike, overwrite: bool) -> None:
    """Raise FileExistsError if `path` exists and `overwrite` is False."""
    if Path(path).exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists: choose another, or replace it (--overwrite; overwrite=True in Python)"
        )


@contextlib.contextmanager
def replacing(path: str | os.PathLike, *, lose_others: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success, move it to `path`.

    Write a file or a folder at the temporary path. If the body raises, the temporary path and the
    parent folders created for it are removed, and `path` keeps its old content. The temporary name
    keeps the suffix, because some writers depend on it.

    Args:
        path: The file or folder to replace.
        lose_others: Whether to delete files of the old folder that the new folder lacks.

    Raises:
        FileExistsError: If the new folder lacks files of the old one and `lose_others` is False.
        OSError: If the disk is full; the message names `path`.
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
            # A folder cannot be replaced in one step: move the old one away first.
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
    """Yield an empty folder beside `path` to prepare its content in, and remove it at the end.

    Scratch folders of killed processes are removed first. Each process holds a lock inside its
    scratch folder; the operating system releases the lock when the process ends.

    Raises:
        OSError: If the disk is full; the message names `path`.
    """
    path = Path(path)
    remove_stale(path.parent, path.name)
    lock = None
    while lock is None:  # another process may remove the new folder as stale before it is locked
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
            f"{os.strerror(number)}: {path} could not be written; its old content is intact",
        ) from error
    finally:
        lock.release()
        shutil.rmtree(room, ignore_errors=True)


def remove_stale(folder: str | os.PathLike, name: str | None = None) -> None:
    """Remove scratch folders of killed processes from `folder`; with `name`, only those for it."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for found in filter(None, map(_SCRATCH.fullmatch, names)):
        target, room = found["name"] or "saving", Path(folder, found.string)
        if name not in (None, target):
            continue
        # OSError: it belongs to another user, for example, or another process removed it first.
        with contextlib.suppress(OSError):
            lock = _lock(room / f"{target}{LOCK}")
            if not isinstance(lock, FileLock):
                continue
            # The process was killed between the two moves of `replacing`: the new folder is
            # complete.
            if _old(room, target).exists() and not Path(folder, target).exists():
                os.replace(room / target, Path(folder, target))
            lock.release()
            shutil.rmtree(room, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: str | os.PathLike) -> Iterator[None]:
    """Hold an exclusive lock on a folder, and remove what killed processes left there.

    The operating system releases the lock when the process ends, even if it is killed.

    Raises:
        ValueError: If another process holds the lock.
    """
    folder = Path(folder)
    path = folder / LOCK
    with _made(folder):
        lock = _lock(path)
        if lock is None:
            owner = ""
            with contextlib.suppress(OSError):  # Windows does not let others read a locked file
                owner = (number := path.read_text()) and f" (process {number})"
            raise ValueError(
                f"{folder} is in use by another run{owner}: wait until it ends, or choose another "
                "folder"
            )
        try:
            with contextlib.suppress(OSError):
                path.write_text(str(os.getpid()))
            for place in (folder, *filter(Path.is_dir, folder.iterdir())):
                remove_stale(place)
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows cannot delete it before it is closed
                path.unlink()
            lock.release()


@contextlib.contextmanager
def waiting(path: str | os.PathLike) -> Iterator[None]:
    """Hold an exclusive lock, once no other process holds it.

    Args:
        path: File of the lock; it is created, and stays.

    Raises:
        OSError: If the file cannot be created.
    """
    lock = _lock(Path(path), timeout=-1)
    try:
        yield
    finally:
        lock.release()


def removed(*paths: str | os.PathLike) -> None:
    """Remove these files and folders; ignore those that do not exist."""
    for path in map(Path, paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder and its missing parents; at the end, remove those of them that are empty."""
    made = [x for x in (folder, *folder.parents) if not x.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # it is not empty
            for x in made:
                x.rmdir()


class _NoLock:
    """A stand-in for a lock on file systems without locks."""

    def release(self) -> None:
        """Do nothing."""


def _lock(path: Path, timeout: float = 0) -> FileLock | _NoLock | None:
    """Acquire the lock and return it; None if another process holds it, and for `timeout` seconds.

    With a timeout of -1, wait until it is free.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
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
    """Give files created with owner-only modes, as by `tempfile`, the modes that the umask sets."""
    if os.name != "posix":
        return
    for x in (path, *path.rglob("*")):
        if not x.is_symlink():
            usual = folder_mode & (0o777 if x.is_dir() else 0o666)
            mode = x.stat().st_mode & 0o7777
            if mode | usual != mode:
                x.chmod(mode | usual)


def _full_disk(error: Exception) -> int | None:
    """Return the errno if the disk or the user's quota is full; None for other errors."""
    number = getattr(error, "errno", None)
    if number is None and (found := _SYSTEM_ERROR.search(str(error))):
        number = int(found[1] or found[2])
    return number if number in _FULL else None


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Write `value` as indented JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def write_synced(path: str | os.PathLike, data: bytes) -> None:
    """Write a file so that it is on the disk, whole, also if the machine loses power next."""
    path = Path(path)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_json(path: str | os.PathLike) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: If the file is not valid JSON; the message names it.
    """
    try:
        return json.loads(Path(path).read_text("utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError: bad JSON or bad UTF-8
        raise ValueError(f"{path} is not valid JSON: {error}") from error
