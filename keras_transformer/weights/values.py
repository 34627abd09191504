"""Arrays in safetensors files, whole or in the slices that several processes wrote."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_transformer.config import require
from keras_transformer.layers.head_groups import FORMAT
from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import refuse_pointer

METADATA = {"keras_transformer_format": str(FORMAT)}  # in each safetensors file we write


class Values:
    """The arrays that `slices.write_variables` or `weights.save_weights` wrote.

    Args:
        path: The path that was passed to that function.
        foreign: Whether another program wrote the file, without the number of our format.

    Attributes:
        shapes: Shape of each array by its name.

    Raises:
        FileNotFoundError: If there is no such file, and no index of slices.
        ValueError: If a file is broken, or of another format.
    """

    def __init__(self, path: str | os.PathLike, foreign: bool = False):
        self._path = Path(path)
        self._whole: dict[str, np.ndarray] = {}
        self._slices: dict[str, list] = {}
        self._files: dict[int, Any] = {}
        if not index_of(self._path).is_file():
            with _complete(self._path), safe_open(self._path, "numpy") as file:
                metadata = file.metadata() or {}
                self._whole = {name: file.get_tensor(name) for name in list(file.keys())}
            self.shapes = _shapes(self._whole)
        else:
            metadata = read_json(index_of(self._path))
            try:
                arrays = metadata.pop("arrays")
                self.shapes = {name: tuple(x["shape"]) for name, x in arrays.items()}
                self._slices = {name: [*map(tuple, x["slices"])] for name, x in arrays.items()}
            except (AttributeError, KeyError, TypeError) as error:
                raise ValueError(f"{index_of(self._path)} is not an index of slices") from error
        if not foreign:
            ((name, number),) = METADATA.items()
            version, said = metadata.get(name), "another version or another program wrote it"
            require(version == number, f"{name} of {self._path}", version, f"{number!r}: {said}")

    def read(self, name: str, index: tuple[slice, ...] | None = None) -> np.ndarray:
        """Return an array, or a part of it.

        Args:
            name: Name of the array.
            index: A slice of each axis; None: all.

        Raises:
            FileNotFoundError, ValueError: If a file with a slice is missing or broken.
        """
        shape = self.shapes[name]
        index = index or (slice(None),) * len(shape)
        if name in self._whole:
            return self._whole[name][index]
        spans = [axis.indices(size)[:2] for axis, size in zip(index, shape, strict=True)]
        result, filled = None, 0
        for number, start in self._slices[name]:
            values = self._slice(number, key_of(name, start))
            if result is None:
                result = np.empty([stop - first for first, stop in spans], values.dtype)
            ends = [first + size for first, size in zip(start, values.shape, strict=True)]
            overlaps = [
                (max(a, first), min(b, stop))
                for a, b, (first, stop) in zip(start, ends, spans, strict=True)
            ]
            if all(low < high for low, high in overlaps):
                here = tuple(
                    slice(low - first, high - first)
                    for (low, high), (first, _) in zip(overlaps, spans, strict=True)
                )
                there = tuple(
                    slice(low - a, high - a) for (low, high), a in zip(overlaps, start, strict=True)
                )
                result[here] = values[there]
                filled += result[here].size
        if result is None or filled != result.size:
            raise ValueError(f"{index_of(self._path)} names no slices for all of {name}")
        return result

    def _slice(self, number, key):
        path = file_of(self._path, number)
        with _complete(path):
            if number not in self._files:
                self._files[number] = safe_open(path, "numpy")
            return self._files[number].get_tensor(key)


def _shapes(arrays):
    return {name: value.shape for name, value in arrays.items()}


@contextlib.contextmanager
def _complete(path):
    if not path.is_file():
        raise FileNotFoundError(f"there is no weights file {path}")
    refuse_pointer(path)
    try:
        yield
    except SafetensorError as error:
        raise ValueError(f"{path} is not a complete safetensors file: {error}") from error


def key_of(name: str, start: Sequence[int]) -> str:
    """Return the key of a slice in its file: the array's name and the slice's start index."""
    return "@".join([name, ",".join(map(str, start))])


def index_of(path: Path) -> Path:
    """Return the path of the index of slices."""
    return path.with_suffix(".slices.json")


def file_of(path: Path, number: int) -> Path:
    """Return the path of the file with the slices of a process."""
    return path.with_suffix(f".{number:05d}{path.suffix}")
