"""Git LFS pointers: the text files that a clone without Git LFS has in place of large files."""

from __future__ import annotations

import os
from pathlib import Path

_POINTER = b"version https://git-lfs.github.com/spec/v1"


def refuse_pointer(path: str | os.PathLike) -> None:
    """Raise ValueError if a file is a Git LFS pointer; the message says how to get the file."""
    with open(path, "rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise ValueError(
                f"{path} is a Git LFS pointer, not the file that it stands for: "
                f"run `git lfs pull` in {Path(path).parent}"
            )


def read_bytes(path: str | os.PathLike) -> bytes:
    """Return the content of a file.

    Raises:
        ValueError: If it is a Git LFS pointer.
    """
    refuse_pointer(path)
    return Path(path).read_bytes()
