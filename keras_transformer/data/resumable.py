"""A text file that is written chunk by chunk, and goes on where it was stopped."""

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
    """Write the lines of each chunk; the same call goes on after the last chunk that is whole.

    Until the end the lines are in a file beside it, with the name and `.part`; `.part.json` says
    how far it is. So `path` is there once everything is written.

    Args:
        path: The file; it must not exist.
        chunks: What the lines are made of.
        lines_of: Returns the lines, without line ends, of the chunk of a number.
        run: What the lines depend on, plain values; another run does not go on with this one's.

    Returns:
        The number of chunks that were written before.

    Raises:
        ValueError: If the file exists, or the part beside it is of another run.
    """
    path = Path(path)
    part, state = (path.with_name(path.name + x) for x in (".part", ".part.json"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with owned(path.with_name(f"{path.name}.part.lock"), f"{path}"):
        if path.exists():
            raise ValueError(f"{path} must not exist: it is written already")
        begun = _begun(part, state, run)
        try:
            _write(part, state, chunks, lines_of, begun)
        except OSError as error:
            problem = error.strerror or error
            raise OSError(
                error.errno, f"{problem}: {part}; the same command goes on after its last chunk"
            ) from error
        part.replace(path)
        state.unlink(missing_ok=True)
        remove_stale(state.parent, state.name)  # of a process that was killed at its last note
    return begun["chunks"]


def _write(part, state, chunks, lines_of, begun):
    """Write the chunks that follow those that were written before."""
    with part.open("r+b" if begun["chunks"] else "wb") as file:
        file.truncate(begun["bytes"])
        file.seek(begun["bytes"])
        for number, chunk in enumerate(chunks):
            if number < begun["chunks"]:
                continue
            lines = "".join(f"{line}\n" for line in lines_of(number, chunk))
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())
            now = {"run": begun["run"], "chunks": number + 1, "bytes": file.tell()}
            write_json(state, now)


def _begun(part, state, run):
    """Return how far the part is; nothing, if it was never begun."""
    plain = json.loads(json.dumps(run))
    nothing = {"run": plain, "chunks": 0, "bytes": 0}
    if not (part.is_file() and state.is_file()):
        return nothing
    try:
        found = json.loads(state.read_text("utf-8"))
        known = {name: found[name] for name in nothing}
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
