"""`RaggedFile`: a file to which sequences are written one by one, for data larger than memory."""

from __future__ import annotations

import array
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.data.ragged import Ragged


class RaggedFile:
    """A file of sequences of integers; only their lengths are kept in memory.

    ```python
    with RaggedFile("ids.bin") as file:
        file.append([5, 6, 7])
    ragged = file.read()
    ```

    Args:
        path: The file, which is replaced.
        dtype: Type of the integers.
    """

    def __init__(self, path: str | os.PathLike, dtype: str = "int32"):
        self.path, self.dtype = os.fspath(path), np.dtype(dtype)
        self._lengths = array.array("q")
        self._file = open(path, "wb")  # noqa: SIM115 - closed by `__exit__`

    def __enter__(self) -> RaggedFile:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._lengths)

    def append(self, sequence: Sequence[int] | np.ndarray) -> None:
        """Append a sequence to the file."""
        self._lengths.append(0)
        self.extend(sequence)

    def extend(self, sequence: Sequence[int] | np.ndarray) -> None:
        """Append integers to the last sequence."""
        self._file.write(np.asarray(sequence, self.dtype).tobytes())
        self._lengths[-1] += len(sequence)

    def read(self) -> Ragged:
        """Return all sequences, mapped into memory; call it after the file is closed."""
        starts = np.cumsum(np.concatenate([[0], np.array(self._lengths, np.int64)]))
        if not starts[-1]:  # an empty file cannot be mapped
            return Ragged(np.zeros(0, self.dtype), starts)
        return Ragged(np.memmap(self.path, self.dtype, mode="r"), starts)
