"""Writing files and folders so that a kill or a full disk leaves the old ones whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[Path]:
    """Yields a temporary path beside `path`; on success it takes the place of `path`.

    What is written there may be a file or a folder. If the body raises, it is removed, as are
    folders that were made for it, and what was at `path` is untouched. The temporary name keeps
    the suffix, which some writers look at.
    """
    path = Path(path)
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    room = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        temporary = room / path.name
        yield temporary
        if path.is_dir() and temporary.exists():
            # A folder cannot be replaced in one step: the old one steps aside first.
            os.replace(path, room / "old")
            try:
                os.replace(temporary, path)
            except OSError:
                os.replace(room / "old", path)
                raise
        else:
            os.replace(temporary, path)
    finally:
        shutil.rmtree(room, ignore_errors=True)
        with contextlib.suppress(OSError):  # it is not empty
            for folder in made:
                folder.rmdir()


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes `value` as indented JSON."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")


def read_json(path: str | os.PathLike) -> Any:
    """Reads JSON; ValueError names the file when it is broken."""
    text = Path(path).read_text("utf-8")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
