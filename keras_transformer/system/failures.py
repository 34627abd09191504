"""Errors of a command's input and environment, and their messages."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator

BAD_INPUT = (ValueError, OSError, ImportError, NotImplementedError, MemoryError)
LONGEST = 2000  # maximum number of characters of a message
# The disk or the quota is full, or a file is larger than `ulimit` allows.
FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG}
# A system error number in the message of a Rust library, of HDF5 or of another process.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)|\berrno = (\d+)|\[Errno (\d+)\]")
_TEXTS = {os.strerror(number): number for number in FULL}  # TensorFlow's messages have no number
_NO_MEMORY = re.compile(r"out of memory|can't allocate memory|RESOURCE_EXHAUSTED", re.IGNORECASE)
_OF_MEMORY = {"OutOfMemoryError", "ResourceExhaustedError"}  # errors of PyTorch and TensorFlow


def in_one_line(error: BaseException) -> str:
    """Return the error's message on one line, or the name of its class if it has none.

    The middle of a message longer than `LONGEST` is left out. Errors of the file system have the
    form that other programs use: "train.en: No such file or directory".
    """
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno and error.strerror and error.filename is not None:
        names = [x for x in (error.filename, error.filename2) if x is not None]
        names = [str(x) if isinstance(x, int) else os.fsdecode(x) for x in names]
        message = " ".join(f"{' -> '.join(names)}: {error.strerror}".split())
    if isinstance(error, MemoryError) and not message:
        return "out of memory"
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} [...] {message[-LONGEST // 4 :]}"
    return message or type(error).__name__


def full_disk(error: Exception) -> int | None:
    """Return the errno of an error if it is one of `FULL`, else None."""
    number = getattr(error, "errno", None)
    if number is None and (match := _SYSTEM_ERROR.search(str(error))):
        number = int(match[1] or match[2] or match[3])
    if number is None:
        number = next((x for text, x in _TEXTS.items() if text in str(error)), None)
    return number if number in FULL else None


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error means that Python or a backend ran out of memory."""
    if isinstance(error, RuntimeError) and _NO_MEMORY.search(str(error)):
        return True
    return isinstance(error, MemoryError) or type(error).__name__ in _OF_MEMORY


@contextlib.contextmanager
def memory_errors() -> Iterator[None]:
    """Raise MemoryError in place of a backend's own out-of-memory error.

    Raises:
        MemoryError: If the body runs out of memory. If it replaces a backend's error, its message
            names an option that reduces the memory.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if not lacks_memory(error):
            raise
        told = "out of memory: smaller batches (tokens_per_batch) need less"
        raise MemoryError(f"{told}: {in_one_line(error):.200}") from error


@contextlib.contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise ValueError in place of errors whose class is not in `BAD_INPUT`.

    Files of other programs can have values of any type in any place, so reading them can raise
    errors of any class.

    Args:
        what: Name of the thing that is read, for the message.

    Raises:
        ValueError: If the body raises such an error; the message begins with `what`.
    """
    try:
        yield
    except BAD_INPUT:
        raise
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"{what} cannot be read: {told:.300}") from error
