"""Sequences of any lengths in one flat array: a corpus in little memory, shared by processes."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence

import numpy as np


class Ragged:
    """Sequences of whole numbers from 0, the i-th being values[starts[i]:starts[i + 1]].

    Pickled, it is two files to be mapped: worker processes share one copy in memory. The files
    live as long as the object that was pickled.

    Args:
        values: the sequences one after another.
        starts: where each begins, and the end of the last.
    """

    def __init__(self, values: np.ndarray, starts: np.ndarray):
        self.values = values
        self.starts = starts
        self._folder = None

    @classmethod
    def pack(cls, sequences: Iterable[Sequence[int]]) -> Ragged:
        """Copies sequences, in the smallest type that holds them; negative numbers as int32."""
        sequences = list(sequences)
        starts = np.cumsum([0, *map(len, sequences)])
        values = np.fromiter(itertools.chain.from_iterable(sequences), np.int32, starts[-1])
        if values.min(initial=0) >= 0:
            values = values.astype(np.min_scalar_type(values.max(initial=0)))
        return cls(values, starts)

    @classmethod
    def join(cls, parts: Sequence[Ragged]) -> Ragged:
        """The sequences of all parts."""
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

    def take(self, indices: np.ndarray) -> Ragged:
        """Some of the sequences, in the order of `indices`."""
        lengths = self.starts[indices + 1] - self.starts[indices]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        moved = np.repeat(self.starts[indices] - starts[:-1], lengths)
        return Ragged(self.values[np.arange(starts[-1]) + moved], starts)

    def part(self, start: int, stop: int) -> Ragged:
        """The sequences from `start` on and before `stop`; fewer if there are not so many."""
        starts = self.starts[start : stop + 1]
        return Ragged(self.values[starts[0] : starts[-1]], starts - starts[0])

    def joined(self, starts: np.ndarray) -> Ragged:
        """Sequences starts[i] to starts[i + 1] - 1 one after another as the i-th, for each i."""
        return Ragged(self.values, self.starts[starts])

    def shifted(self, first: int) -> Ragged:
        """Each sequence shifted right by one: `first`, then all but its last number."""
        values = np.roll(self.values.astype(np.int32), 1)
        values[self.starts[:-1]] = first
        return Ragged(values, self.starts)

    def padded(self, rows: int, length: int, pad_id: int) -> np.ndarray:
        """A matrix (rows, length), int32: a sequence a row, and `pad_id` where there is none."""
        matrix = np.full((rows, length), pad_id, np.int32)
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
        self.__init__(values, np.load(f"{folder}/starts.npy", mmap_mode="r"))
