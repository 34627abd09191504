"""Writing of a text file in chunks, which resumes after an interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_transformer.system.files import remove_stale, write_json
from keras_transformer.system.locks import owned


def write_in_chunks(
    path: str | os.PathLike,
    chunks: Iterable[Any],
    lines_of: Callable[[int, Any], Iterable[str]],
    run: dict[str, Any],
) -> int:
    """Write the lines of each chunk; after an interruption, the same call resumes.

    It resumes after the last complete chunk. Until the end, the lines are in the file PATH.part,
    and the progress in PATH.part.json; `path` exists only when everything is written.

    Args:
        path: The file; it must not exist.
        chunks: The input, in the same order in each call.
        lines_of: Function from the number of a chunk and the chunk to its lines, without line ends.
        run: Everything that the lines depend on, as plain values; only a call with the same values
            resumes.

    Returns:
        The number of chunks that were written by earlier calls.

    Raises:
        ValueError: If the file exists, another process writes it, PATH.part was begun with another
            `run`, or PATH.part.json is damaged.
        OSError: If a chunk cannot be written; names PATH.part.
    """
    path = Path(path)
    part, state = (path.with_name(path.name + x) for x in (".part", ".part.json"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with owned(path.with_name(f"{path.name}.part.lock"), f"{path}"):
        if path.exists():
            raise ValueError(f"{path} must not exist: it is written already")
        progress = _begun(part, state, run)
        try:
            _write(part, state, chunks, lines_of, progress)
        except OSError as error:
            problem = error.strerror or error
            raise OSError(
                error.errno, f"{problem}: {part}; the same command resumes after its last chunk"
            ) from error
        part.replace(path)
        state.unlink(missing_ok=True)
        # Temporary files of a process that was killed while it wrote its progress.
        remove_stale(state.parent, state.name)
    return progress["chunks"]


def _write(part, state, chunks, lines_of, progress):
    """Write the chunks that are not written yet, and the progress after each."""
    with part.open("r+b" if progress["chunks"] else "wb") as file:
        file.truncate(progress["bytes"])
        file.seek(progress["bytes"])
        for number, chunk in enumerate(chunks):
            if number < progress["chunks"]:
                continue
            lines = "".join(f"{line}\n" for line in lines_of(number, chunk))
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
            now = {"run": progress["run"], "chunks": number + 1, "bytes": file.tell()}
            write_json(state, now)


def _begun(part, state, run):
    """Return the progress of PATH.part: `run`, and the numbers of chunks and bytes written.

    If PATH.part or PATH.part.json is missing, both numbers are 0.
    """
    plain = json.loads(json.dumps(run))
    nothing = {"run": plain, "chunks": 0, "bytes": 0}
    if not (part.is_file() and state.is_file()):
        return nothing
    try:
        content = json.loads(state.read_text("utf-8"))
        known = {name: content[name] for name in nothing}
        if not all(type(known[name]) is int and known[name] >= 0 for name in ("chunks", "bytes")):
            raise ValueError("chunks and bytes must be counts")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{state} is broken: remove it and {part} to start over") from error
    if known["run"] != plain or part.stat().st_size < known["bytes"]:
        raise ValueError(
            f"{part} was begun with other arguments: {known['run']}, now {plain}; give those, or "
            "remove it to start over"
        )
    return known
