"""The container of GGUF: metadata, a table of tensors, and their data, plain or quantized."""

from __future__ import annotations

import math
import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.system.extras import missing
from keras_transformer.system.git_lfs import refuse_pointer

MAGIC = b"GGUF"
SUFFIX = ".gguf"
ALIGNMENT = 32  # of the tensors' data in bytes, unless `general.alignment` has another number
_VERSIONS = (2, 3)
# Codes of `struct` by GGUF's number of the type.
_NUMBERS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")
_TEXT, _ARRAY = 8, 9
_MOST_AXES = 4  # as in llama.cpp


def is_gguf(path: str | os.PathLike) -> bool:
    """Return whether a path ends with ".gguf" and is no folder."""
    return Path(path).suffix.lower() == SUFFIX and not Path(path).is_dir()


def library() -> Any:
    """Return the package `gguf`.

    Raises:
        ImportError: If it is not installed; the message names the extra to install.
    """
    try:
        import gguf
    except ImportError as error:
        raise missing("a GGUF file", "gguf") from error
    return gguf


@dataclass(frozen=True)
class StoredTensor:
    """Place and type of a tensor in a file.

    Args:
        shape: Shape of the values.
        kind: Type of the data, a `gguf.GGMLQuantizationType`.
        start: Offset of the first byte in the file.
    """

    shape: tuple[int, ...]
    kind: Any
    start: int

    @property
    def byte_shape(self) -> tuple[int, ...]:
        """The shape of the stored bytes: blocks of the last axis have a fixed number of bytes."""
        block, size = library().GGML_QUANT_SIZES[self.kind]
        return (*self.shape[:-1], self.shape[-1] // block * size)


class GGUFFile:
    """The metadata of a GGUF file, and its tensors, each read on demand.

    Args:
        path: The file.

    Attributes:
        path: The file.
        facts: The metadata by name: numbers, texts, and lists of them.
        tensors: The tensors by name.

    Raises:
        FileNotFoundError: If there is no such file.
        ImportError: If the package `gguf` is missing.
        ValueError: If it is no GGUF file, incomplete, damaged or one of several parts, or has a
            type of tensors that is not supported.
    """

    def __init__(self, path: str | os.PathLike):
        library()
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        refuse_pointer(path)
        self.size = self.path.stat().st_size
        with self.path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError(f"{path} is not a GGUF file: it does not begin with GGUF")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                try:
                    self.facts, self.tensors = self._header(_Cursor(data, len(MAGIC)))
                except (struct.error, ValueError, ArithmeticError, MemoryError) as error:
                    raise ValueError(f"{path} cannot be read as a GGUF file: {error}") from error
        parts = self.facts.get("split.count", 1)
        if parts != 1:
            raise ValueError(
                f"{path} is one of {parts} parts (split.count): join them with "
                "`llama-gguf-split --merge` of llama.cpp"
            )

    def _header(self, cursor):
        """Return the metadata and the tensors."""
        version = cursor.number("I")
        if version not in _VERSIONS:
            is_big = int.from_bytes(version.to_bytes(4, "little"), "big") in _VERSIONS
            kind = "a big-endian file" if is_big else f"version {version} of the format"
            raise ValueError(f"it is {kind}; supported are little-endian versions {_VERSIONS}")
        num_tensors, num_facts = cursor.number("Q"), cursor.number("Q")
        facts: dict[str, Any] = {}
        for _ in range(num_facts):
            name = cursor.text()
            if name in facts:
                raise ValueError(f"it has {name:.100} twice")
            facts[name] = cursor.value(cursor.number("I"))
        tensors: dict[str, StoredTensor] = {}
        for _ in range(num_tensors):
            name = cursor.text()
            if name in tensors:
                raise ValueError(f"it has the tensor {name:.100} twice")
            tensors[name] = _tensor(cursor, name)
        alignment = facts.get("general.alignment", ALIGNMENT)
        if type(alignment) is not int or alignment < 1:
            raise ValueError(f"general.alignment must be at least 1, got {alignment!r:.100}")
        first = -(-cursor.place // alignment) * alignment
        placed = {
            name: StoredTensor(tensor.shape, tensor.kind, first + tensor.start)
            for name, tensor in tensors.items()
        }
        for name, tensor in placed.items():
            end = tensor.start + math.prod(tensor.byte_shape)
            if end > self.size:
                raise ValueError(
                    f"it is incomplete: {name:.100} ends at byte {end}, the file at {self.size}"
                )
        return facts, placed

    def read(self, name: str) -> np.ndarray:
        """Return the values of a tensor in float32; quantized ones are dequantized."""
        tensor = self.tensors[name]
        size = math.prod(tensor.byte_shape)
        # Opened anew for each tensor: the pages of a mapped file would stay in memory.
        data = np.fromfile(self.path, "uint8", size, offset=tensor.start)
        return library().dequantize(data.reshape(tensor.byte_shape), tensor.kind)


def _tensor(cursor, name):
    """Return the next entry of the table; its `start` counts from the first tensor's first byte."""
    num_axes = cursor.number("I")
    if num_axes > _MOST_AXES:
        raise ValueError(f"{name:.100} has {num_axes} axes, more than {_MOST_AXES}")
    shape = tuple(cursor.number("Q") for _ in range(num_axes))[::-1]
    number, start = cursor.number("I"), cursor.number("Q")
    types = library().GGMLQuantizationType
    kind = types(number) if number in {*types} else None
    if kind is None or not _is_readable(kind):
        type_name = kind.name if kind is not None else f"number {number}"
        raise ValueError(f"{name:.100} has the type {type_name}, which is not supported")
    block, _ = library().GGML_QUANT_SIZES[kind]
    if not shape or 0 in shape or shape[-1] % block:
        raise ValueError(f"{name:.100} has the shape {shape}, in blocks of {block}")
    return StoredTensor(shape, kind, start)


def _is_readable(kind):
    """Return whether `gguf` can dequantize a type, by trying a block of zeros."""
    _, size = library().GGML_QUANT_SIZES[kind]
    try:
        library().dequantize(np.zeros((1, size), "uint8"), kind)
    except NotImplementedError:
        return False
    return True


class _Cursor:
    """A position in the bytes of a file, from which values are read one after the other."""

    def __init__(self, data, place):
        self.data, self.place = data, place

    def number(self, kind):
        """Return the next number, given its `struct` code."""
        (number,) = struct.unpack_from(f"<{kind}", self.data, self.place)
        self.place += struct.calcsize(f"<{kind}")
        # A float32 becomes its shortest decimal number: 1e-05, not 9.999999747378752e-06.
        return float(str(np.float32(number))) if kind == "f" else number

    def text(self):
        size = self.number("Q")
        self._require(size)
        self.place += size
        return str(self.data[self.place - size : self.place], "utf-8")

    def value(self, kind):
        """Return the next value of metadata, given GGUF's number of its type."""
        if kind == _TEXT:
            return self.text()
        if kind == _ARRAY:
            return self._array(self.number("I"), self.number("Q"))
        return self.number(_number_type(kind))

    def _array(self, kind, count):
        if kind == _TEXT:
            self._require(8 * count)  # a lower bound: each text begins with 8 bytes of length
            return [self.text() for _ in range(count)]
        code = _number_type(kind)
        size = struct.calcsize(f"<{code}") * count
        self._require(size)
        values = np.frombuffer(self.data[self.place : self.place + size], f"<{code}")
        self.place += size
        return values.tolist()

    def _require(self, size):
        """Raise ValueError if the file has fewer than `size` bytes left."""
        if size > len(self.data) - self.place:
            raise ValueError(f"it is incomplete: it ends before byte {self.place + size}")


def _number_type(kind):
    code = _NUMBERS[kind] if kind < len(_NUMBERS) else None
    if code is None:
        raise ValueError(f"it has metadata of the type {kind}, which is not supported")
    return code
