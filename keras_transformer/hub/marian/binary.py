"""Marian's binary model files (`.bin`), also with 8-bit matrices of `intgemm8`."""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.hub.marian.npz import ModelFile
from keras_transformer.hub.tensors import check_finite
from keras_transformer.system.files import replacing
from keras_transformer.system.git_lfs import refuse_pointer

SUFFIX = ".bin"
VERSION = 1
_ALIGNMENT = 256
_FLOATS, _SIGNED, _UNSIGNED = 0x400, 0x100, 0x200
_DTYPES = {
    **{_FLOATS + size: np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{_SIGNED + size: np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{_UNSIGNED + size: np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
}
INTGEMM8 = 0x10001
# Types of matrices in whole numbers, by Marian's number and by that of Bergamot, Firefox's fork.
_INTEGERS = {0x10001: "<i1", 0x4101: "<i1", 0x10002: "<i2", 0x4102: "<i2"}
_IN_ONE_LAYOUT = 0x1F800  # bits of types with the layout of one kind of processor
_ACTIVATIONS = "_QuantMultA"  # end of the names of the scales of 8-bit activations ("alphas")


class BinaryFile(ModelFile):
    """A `ModelFile` in Marian's binary form, which reads all arrays at once; see `read_binary`."""

    def _all_names(self) -> set[str]:
        self._arrays = read_binary(self.path)
        return {*self._arrays}

    def array(self, name: str) -> np.ndarray:
        return self._arrays[name]

    @property
    def most_elements(self) -> int:
        """The number of elements of all arrays."""
        return sum(array.size for array in self._arrays.values())


def is_binary(path: str | os.PathLike) -> bool:
    """Return whether a file's name ends with ".bin" and its content begins with `VERSION`."""
    path = Path(path)
    if path.suffix != SUFFIX or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8) == struct.pack("<Q", VERSION)


def read_binary(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Return the arrays of a `.bin` file by name; matrices of whole numbers become float32.

    A warning gives the number of these matrices, which have 8 or 16 bits. In the file each has one
    scale. In our "int8" each output has one, so saving in "int8" rounds them again. Scales of
    activations, as in Firefox's models, are left out.

    Args:
        path: The file.

    Raises:
        ValueError: If the file is truncated, damaged or not of Marian, or a number in it is NaN,
            infinite or of a type that is not supported.
    """
    path = Path(path)
    refuse_pointer(path)
    file = _Bytes(path)
    version = file.numbers("Q", 1)[0]
    if version != VERSION:
        raise ValueError(
            f"{path} is not a binary model of Marian of version {VERSION}: it begins with {version}"
        )
    count = file.numbers("Q", 1)[0]
    headers = [file.numbers("Q", 4) for _ in file.counted(count, 32)]
    names = [file.text(length) for length, *_ in headers]
    shapes = [file.numbers("i", axes) for _, _, axes, _ in headers]
    file.take(file.numbers("Q", 1)[0])
    arrays, num_rounded = {}, 0
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        content = file.take(length)
        if name.endswith(_ACTIVATIONS):
            continue
        arrays[name] = _array(path, name, kind, shape, content)
        num_rounded += kind in _INTEGERS
    if num_rounded:
        message = f"{num_rounded} matrices of {path} have 8 or 16 bits: they are read as float32"
        warnings.warn(message, stacklevel=2)
    return arrays


def write_binary(
    path: str | os.PathLike, arrays: Mapping[str, np.ndarray], rounded: Collection[str] = ()
) -> None:
    """Write arrays as a `.bin` file.

    Args:
        path: The file to write.
        arrays: Arrays by name.
        rounded: Names of the matrices to write with 8 bits, as `intgemm8`.
    """
    numbers = {dtype: number for number, dtype in _DTYPES.items()}
    kinds = [INTGEMM8 if x in rounded else numbers[arrays[x].dtype] for x in arrays]
    contents = [_rounded(x) if name in rounded else x.tobytes() for name, x in arrays.items()]
    contents = [x + bytes(-len(x) % _ALIGNMENT) for x in contents]
    names = [name.encode() + b"\0" for name in arrays]
    shapes = [x.shape for x in arrays.values()]
    header = struct.pack("<2Q", VERSION, len(arrays))
    for name, kind, shape, content in zip(names, kinds, shapes, contents, strict=True):
        header += struct.pack("<4Q", len(name), kind, len(shape), len(content))
    header += b"".join(names)
    header += b"".join(struct.pack(f"<{len(shape)}i", *shape) for shape in shapes)
    gap = -(len(header) + 8) % _ALIGNMENT
    with replacing(Path(path)) as temporary, temporary.open("wb") as file:
        file.write(header + struct.pack("<Q", gap) + bytes(gap))
        file.writelines(contents)


class _Bytes:
    """The bytes of a file, read in order; reading beyond the end raises ValueError."""

    def __init__(self, path: Path):
        self.path = path
        self.content = np.fromfile(path, np.uint8)
        self.place = 0

    def counted(self, count: int, size: int) -> range:
        """Return `range(count)` if there are bytes left for `count` parts of `size` bytes."""
        if count * size > len(self.content) - self.place:
            raise ValueError(f"{self.path} is not a whole binary model of Marian: it is truncated")
        return range(count)

    def take(self, size: int) -> np.ndarray:
        self.counted(size, 1)
        self.place += size
        return self.content[self.place - size : self.place]

    def numbers(self, kind: str, count: int) -> tuple[Any, ...]:
        self.counted(count, 1)
        form = struct.Struct(f"<{count}{kind}")
        return form.unpack(self.take(form.size).tobytes())

    def text(self, size: int) -> str:
        try:
            return self.take(size).tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path} is damaged: a name is not text") from error


def _array(path, name, kind, shape, content):
    """Return one array; `content` may be longer, as it is padded to a multiple of 256 bytes."""
    if kind not in _DTYPES and kind not in _INTEGERS:
        advice = ": it is for one kind of processor; convert the model with --gemm-type intgemm8"
        raise ValueError(
            f"{name} in {path} has the type {kind:#x}, which is not supported"
            f"{advice if kind & _IN_ONE_LAYOUT else ''}"
        )
    dtype = np.dtype(_DTYPES.get(kind) or _INTEGERS[kind])
    count = math.prod(shape)
    needed = count * dtype.itemsize + (4 if kind in _INTEGERS else 0)
    if min(shape, default=1) < 0 or needed > len(content):
        raise ValueError(
            f"{path} is damaged: {name} of shape {shape} needs {needed} bytes, not {len(content)}"
        )
    values = content[: count * dtype.itemsize].view(dtype)
    if kind not in _INTEGERS:
        array = values.reshape(shape)
    else:
        scale = content[count * dtype.itemsize : needed].view("<f4")
        # Matrices are transposed, except token tables.
        is_table = "Wemb" in name
        array = values.reshape(shape if is_table else shape[::-1])
        array = (array if is_table else array.T).astype("float32") / scale
    if dtype.kind == "f" or kind in _INTEGERS:
        check_finite(array, name, path)
    return array


def _rounded(matrix: np.ndarray) -> bytes:
    """Return a matrix as `intgemm8`: transposed, rounded to 8 bits, and its scale."""
    scale = np.float32(127) / np.abs(matrix).max()
    return np.rint(matrix.T * scale).astype("int8").tobytes() + scale.tobytes()
