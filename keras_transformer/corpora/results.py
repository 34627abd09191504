"""The output folder of a job: the files of shards, and notes about their attempts and failures."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from keras_transformer.corpora.shards import Shard
from keras_transformer.system.files import remove_stale, removed, write_synced

_BEGUN = "begun"


class Results:
    """The output folder of a job: its shards, their notes, and the attempts of this run.

    Shard 12 is in `shard-00000012.txt`, with the suffix of the job. Its note,
    `shard-00000012.json`, holds the number of lines and bytes and the SHA-256. The note is written
    last: with it, the shard is done. A shard that was given up has `shard-00000012.failed.json`
    instead.

    Args:
        folder: The folder; it exists.
        suffix: Suffix of the shards.
        run: Name of this run; attempts of other runs do not count.
    """

    def __init__(self, folder: str | os.PathLike, suffix: str, run: str):
        self.folder, self.suffix, self.run = Path(folder), suffix, run

    def path(self, shard: Shard) -> Path:
        """Return the path of a shard's output."""
        return self.folder / f"{shard.name}{self.suffix}"

    def is_done(self, shard: Shard) -> bool:
        """Return whether the output of a shard exists and matches its note: size, hash, lines."""
        try:
            noted = json.loads(self._note(shard).read_text("utf-8"))
            with self.path(shard).open("rb") as file:
                if os.fstat(file.fileno()).st_size != noted["bytes"]:
                    return False
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return digest == noted["sha256"] and noted["lines"] == shard.lines
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return False

    def write(self, shard: Shard, lines: Iterable[str]) -> None:
        """Write the output of a shard, then its note; no file is half-written.

        Raises:
            OSError: If the disk is full; the shard has no note then.
            RuntimeError: If the number of lines is not that of the shard.
        """
        removed(self._note(shard))
        texts = [line.encode() + b"\n" for line in lines]
        if len(texts) != shard.lines:
            raise RuntimeError(f"{shard} became {len(texts)} lines")
        data = b"".join(texts)
        note = {
            "lines": len(texts),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        write_synced(self.path(shard), data)
        write_synced(self._note(shard), json.dumps(note).encode() + b"\n")
        removed(self._attempts(shard), self._failure(shard))

    def attempts(self, shard: Shard) -> int:
        """Return the number of this run's attempts at a shard."""
        return self._noted(shard).count(_BEGUN)

    def begin(self, shard: Shard) -> None:
        """Note in a file that an attempt begins, so that it counts even if the process dies."""
        self._append(shard, _BEGUN)

    def failed(self, shard: Shard, error: str) -> None:
        """Note the error of the last attempt."""
        self._append(shard, " ".join(error.split()))

    def set_apart(self, shard: Shard) -> str:
        """Give up a shard: write its `.failed.json`, and return the error of its last attempt."""
        noted = self._noted(shard)
        error = noted[-1] if noted and noted[-1] != _BEGUN else "the worker process died"
        note = {"shard": str(shard), "error": error, "attempts": noted.count(_BEGUN)}
        write_synced(self._failure(shard), json.dumps(note, indent=2).encode() + b"\n")
        removed(self._attempts(shard))
        return error

    def forget(self, shard: Shard) -> None:
        """Remove the notes of the attempts at a shard."""
        removed(self._attempts(shard))

    def clean(self, shards: Iterable[Shard]) -> None:
        """Remove notes of attempts at these shards, and unfinished files of killed processes."""
        names = {shard.name for shard in shards}
        removed(*(x for x in self.folder.glob(".*.attempts") if x.name.split(".")[1] in names))
        remove_stale(self.folder)

    def _noted(self, shard):
        path = self._attempts(shard)
        return path.read_text("utf-8").splitlines() if path.exists() else []

    def _append(self, shard, line):
        with self._attempts(shard).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def _note(self, shard):
        return self.folder / f"{shard.name}.json"

    def _failure(self, shard):
        return self.folder / f"{shard.name}.failed.json"

    def _attempts(self, shard):
        return self.folder / f".{shard.name}.{self.run}.attempts"
