"""Reader of `model.bin`, CTranslate2's file of weights."""

from __future__ import annotations

import math
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.tensors import check_finite
from keras_transformer.system.git_lfs import refuse_pointer

VERSION = 6  # binary version, since CTranslate2 3.0
# In the order of CTranslate2's enum DataType. NumPy has no bfloat16: its bits are read as uint16.
BFLOAT16 = np.dtype(np.uint16)
_TYPES = (np.float32, np.int8, np.int16, np.int32, np.float16, BFLOAT16)
DTYPES: tuple[np.dtype, ...] = tuple(np.dtype(x) for x in _TYPES)
MOST_AXES = 8
SIDES = ("encoder", "decoder")


class VariablePlace(NamedTuple):
    """The place of a variable in the file: offset in bytes, shape and type."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype


class ConvertedFile:
    """The variables of a `model.bin` by name, each read on demand.

    Opening it reads names, shapes and types only, and checks them against the size of the file.

    Args:
        path: The file.

    Attributes:
        path: The file.
        spec: Name of the specification, such as "TransformerSpec".
        revision: Revision of the specification.
        places: Place of each variable, aliases included.
        aliases: Maps names that repeat a variable to the name of that variable.

    Raises:
        ValueError: If the file is truncated, damaged or of another version.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        refuse_pointer(self.path)
        self.places: dict[str, VariablePlace] = {}
        self.aliases: dict[str, str] = {}
        with self.path.open("rb") as file:
            self._file, self._size = file, self.path.stat().st_size
            (version,) = self._numbers("I")
            what = f"the binary version of {self.path}"
            require(version == VERSION, what, version, f"{VERSION}; convert the model again")
            self.spec, (self.revision, count) = self._text(), self._numbers("II")
            for _ in range(count):
                self._add(self._text(), self._place())
            (count,) = self._numbers("I")
            for _ in range(count):
                alias, name = self._text(), self._text()
                if name not in self.places or name in self.aliases:
                    raise self._damaged(f"{alias} repeats {name}, which is not in it")
                self._add(alias, self.places[name])
                self.aliases[alias] = name
            if rest := self._size - file.tell():
                raise self._damaged(f"{rest} bytes follow its end")
            del self._file

    def number(self, name: str, default: Any = None) -> Any:
        """Return a variable that is one number; the default if no variable has this name.

        Raises:
            ValueError: If it is missing and the default is None, or is not one number.
        """
        if name not in self.places and default is not None:
            return default
        what = f"the shape of {name} in {self.path}"
        require(self.shape(name) == (), what, self.shape(name), "(), that of one number")
        return self._array(self.places[name], 0, 1).item()

    def of_both_sides(self, name: str, default: Any = None) -> Any:
        """Return a number that encoder and decoder must share; raise ValueError if they differ."""
        first, second = (self.number(f"{side}/{name}", default) for side in SIDES)
        what = f"decoder/{name} in {self.path}"
        require(first == second, what, second, f"{first}, as in the encoder")
        return first

    def numbers(self) -> dict[str, Any]:
        """Return the values of all variables that are one number, by name."""
        return {name: self.number(name) for name, x in self.places.items() if x.shape == ()}

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable; raise ValueError if it is missing."""
        if name not in self.places:
            raise ValueError(f"{self.path} lacks {name}")
        return self.places[name].shape

    def is_same(self, name: str, other: str) -> bool:
        """Return whether two names are one variable: a conversion stores equal variables once.

        Raises:
            ValueError: If one of them is missing.
        """
        first, second = (self.aliases.get(x, x) for x in (name, other) if self.shape(x))
        return first == second

    def read(self, name: str, part: int = 0, parts: int = 1) -> np.ndarray:
        """Return a variable, or one of its equal parts along the first axis, in float32.

        Whole numbers are divided by their scale, the variable of the same name with "_scale".

        Args:
            name: Name of the variable or alias.
            part: Index of the part.
            parts: Number of parts.

        Raises:
            ValueError: If it is missing or has no such parts, or its scale is missing, of a wrong
                shape, 0, NaN or infinite.
        """
        self.shape(name)
        name = self.aliases.get(name, name)
        place = self.places[name]
        if not place.shape or place.shape[0] % parts:
            raise self._damaged(f"{name} of shape {place.shape} has no {parts} equal parts")
        values = self._floats(place, part, parts)
        if place.dtype.kind == "i":
            values /= self._scale(name, place, part, parts)
        return values

    def _scale(self, name, place, part, parts):
        """Return the scale of a variable, shaped to divide it: one number, or one for each row."""
        scale = self.places.get(f"{name}_scale")
        if scale is None:
            raise self._damaged(f"{name} holds whole numbers, and {name}_scale is missing")
        if scale.shape not in ((), place.shape[:1]):
            raise self._damaged(f"{name}_scale of shape {scale.shape} does not fit {place.shape}")
        by_row = (part, parts) if scale.shape else (0, 1)
        values = self._floats(scale, *by_row)
        check_finite(values, f"{name}_scale", self.path)
        if not values.all():
            raise self._damaged(f"{name}_scale must not be 0")
        return values.reshape(scale.shape and (-1, *(1 for _ in place.shape[1:])))

    def _floats(self, place, part, parts):
        values = self._array(place, part, parts)
        if place.dtype == BFLOAT16:  # the upper half of the bits of a float32
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values.astype(np.float32, copy=False)

    def _array(self, place, part, parts):
        rows = place.shape[:1] and (place.shape[0] // parts,)
        shape = (*rows, *place.shape[1:])
        count = math.prod(shape)
        offset = place.offset + part * count * place.dtype.itemsize
        data = np.fromfile(self.path, np.uint8, count * place.dtype.itemsize, offset=offset)
        return data.view(place.dtype).reshape(shape)

    # `__init__` reads the index with these methods, each from the file's current position.

    def _place(self):
        (axes,) = self._numbers("B")
        if axes > MOST_AXES:
            raise self._damaged(f"a variable has {axes} axes")
        shape = self._numbers(f"{axes}I")
        kind, size = self._numbers("BI")
        if kind >= len(DTYPES):
            raise self._damaged(f"a variable has the unknown type {kind}")
        dtype = DTYPES[kind]
        if math.prod(shape) * dtype.itemsize != size:
            raise self._damaged(f"a variable of shape {shape} has {size} bytes")
        place = VariablePlace(self._file.tell(), shape, dtype)
        self._skip(size)
        return place

    def _add(self, name, place):
        if name in self.places:
            raise self._damaged(f"{name} is in it twice")
        self.places[name] = place

    def _text(self):
        (size,) = self._numbers("H")
        data = self._bytes(size)
        try:
            return data.removesuffix(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self._damaged("a name is not UTF-8") from error

    def _numbers(self, layout):
        layout = f"<{layout}"
        return struct.unpack(layout, self._bytes(struct.calcsize(layout)))

    def _bytes(self, size):
        data = self._file.read(size)
        if len(data) < size:
            raise self._damaged("it ends too early")
        return data

    def _skip(self, size):
        if self._file.tell() + size > self._size:
            raise self._damaged("it ends too early")
        self._file.seek(size, os.SEEK_CUR)

    def _damaged(self, problem):
        return ValueError(f"{self.path} is not a complete model of CTranslate2: {problem}")
