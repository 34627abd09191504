"""File locks, which the operating system releases when their process ends or is killed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


class NoLock:
    """A stand-in for a lock on file systems without locks."""

    def release(self) -> None:
        """Do nothing."""


def acquired(path: Path, timeout: float = 0) -> FileLock | NoLock | None:
    """Acquire the lock of a file and return it; None if it is not free within `timeout` seconds.

    With a timeout of -1, wait until it is free. On a file system without locks, return a `NoLock`.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return None
    except NotImplementedError:
        return NoLock()
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return NoLock()
        raise
    return lock


@contextlib.contextmanager
def owned(path: str | os.PathLike, what: str) -> Iterator[None]:
    """Hold an exclusive lock, whose file names this process and is removed at the end.

    Args:
        path: File of the lock.
        what: What is locked, for the error message.

    Raises:
        ValueError: If another process holds the lock; the message names the process, except on
            Windows.
    """
    path = Path(path)
    lock = acquired(path)
    if lock is None:
        owner = ""
        with contextlib.suppress(OSError):  # Windows does not let others read a locked file
            owner = (number := path.read_text()) and f" (process {number})"
        raise ValueError(
            f"{what} is in use by another run{owner}: wait until it ends, or choose another"
        )
    try:
        with contextlib.suppress(OSError):
            path.write_text(str(os.getpid()))
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows cannot delete it before it is closed
            path.unlink()
        lock.release()


@contextlib.contextmanager
def waiting(path: str | os.PathLike) -> Iterator[None]:
    """Wait until no other process holds a lock, then hold it exclusively.

    Args:
        path: File of the lock; it is created, and stays.

    Raises:
        OSError: If the file cannot be created.
    """
    lock = acquired(Path(path), timeout=-1)
    assert lock is not None, "it waits without end"
    try:
        yield
    finally:
        lock.release()
