"""`Ragged`: sequences of different lengths in one flat array, shared between processes."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np


class Ragged:
    """Sequences of integers, or of float32; sequence i is `values[starts[i]:starts[i + 1]]`.

    Pickling writes two temporary files, and unpickling maps them into memory, so that worker
    processes share one copy. The files are deleted when the pickled object is.

    Args:
        values: All sequences, concatenated.
        starts: The start of each sequence, followed by the end of the last one.
    """

    def __init__(self, values: np.ndarray, starts: np.ndarray):
        self.values = values
        self.starts = starts
        self._folder: str | None = None

    @classmethod
    def pack(cls, sequences: Iterable[Sequence[Any] | np.ndarray], dtype: Any = np.int32) -> Ragged:
        """Make a `Ragged` of sequences, which are copied.

        Args:
            sequences: The sequences.
            dtype: int32 or float32. Integers are stored in the smallest unsigned dtype that can
                hold them, or as int32 if one is negative.
        """
        sequences = list(sequences)
        starts = np.cumsum([0, *map(len, sequences)])
        values = np.fromiter(itertools.chain.from_iterable(sequences), dtype, starts[-1])
        if values.dtype == np.int32 and values.min(initial=0) >= 0:
            values = values.astype(np.min_scalar_type(values.max(initial=0)))
        return cls(values, starts)

    @classmethod
    def join(cls, parts: Sequence[Ragged]) -> Ragged:
        """Return one `Ragged` with the sequences of several, one after another."""
        starts = np.cumsum(np.concatenate([[0], *(part.lengths for part in parts)]))
        return cls(np.concatenate([part.values for part in parts]), starts.astype(np.int64))

    @property
    def lengths(self) -> np.ndarray:
        """The length of each sequence."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"index must be from 0 to {len(self) - 1}, got {index}")
        return self.values[self.starts[index] : self.starts[index + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return map(self.__getitem__, range(len(self)))

    def take(self, indices: np.ndarray) -> Ragged:
        """Return the sequences with these indices, in this order."""
        lengths = self.starts[indices + 1] - self.starts[indices]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.starts[indices] - starts[:-1], lengths)
        return Ragged(self.values[np.arange(starts[-1]) + moved], starts)

    def part(self, start: int, stop: int) -> Ragged:
        """Return the sequences `start` to `stop` - 1; indices beyond the last are ignored."""
        start, stop = min(start, len(self)), min(stop, len(self))
        starts = self.starts[start : stop + 1]
        return Ragged(self.values[starts[0] : starts[-1]], starts - starts[0])

    def joined(self, starts: np.ndarray) -> Ragged:
        """Join adjacent sequences: result i is the sequences starts[i] to starts[i + 1] - 1."""
        return Ragged(self.values, self.starts[starts])

    def shifted(self, first: int) -> Ragged:
        """Shift each sequence right by one: the value `first`, then all values except the last."""
        values = np.roll(self.values.astype(np.int32), 1)
        values[self.starts[:-1]] = first
        return Ragged(values, self.starts)

    def padded(self, rows: int, length: int, pad_id: float) -> np.ndarray:
        """Return the sequences as rows of a matrix (rows, length), int32 or float32.

        The rest of each row, and rows after the last sequence, are `pad_id`.
        """
        dtype = np.float32 if self.values.dtype == np.float32 else np.int32
        matrix = np.full((rows, length), pad_id, dtype)
        matrix[: len(self)][np.arange(length) < self.lengths[:, None]] = self.values
        return matrix

    def __getstate__(self):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="keras-transformer-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            np.save(f"{self._folder}/values.npy", self.values)
            np.save(f"{self._folder}/starts.npy", self.starts)
        return self._folder

    def __setstate__(self, folder):
        values = np.load(f"{folder}/values.npy", mmap_mode="r")
        Ragged.__init__(self, values, np.load(f"{folder}/starts.npy", mmap_mode="r"))
