"""Model files of Marian (`.npz`): arrays by name, and the options of the model."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.hub.marian.marian_options import read_yaml
from keras_transformer.hub.tensors import check_finite
from keras_transformer.system.git_lfs import refuse_pointer

SUFFIX = ".npz"
SPECIAL = "special:"  # prefix of the names of arrays that are not weights
OPTIONS = f"{SPECIAL}model.yml"


class ModelFile:
    """The arrays of an `.npz` file, each read on demand; pickled arrays are never loaded.

    Args:
        path: The file.

    Attributes:
        path: The file.
        size: Its size in bytes.
        names: Names of the arrays of weights.
        specials: Names of the other arrays.
        options: Options of the model, by Marian's names.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is broken, or is not a model of Marian.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"there is no file {self.path}")
        refuse_pointer(self.path)
        self.size = self.path.stat().st_size
        names = self._all_names()
        self.specials = {name for name in names if name.startswith(SPECIAL)}
        self.names = names - self.specials
        if OPTIONS not in names:
            raise ValueError(
                f"{self.path} is not a model of Marian: it has no {OPTIONS}, the model's options"
            )
        text = self.array(OPTIONS).tobytes().rstrip(b"\0")
        self.options: dict[str, Any] = read_yaml(text, f"{OPTIONS} in {self.path}")

    @property
    def most_elements(self) -> int:
        """Maximum number of elements of all arrays: a float has 2 bytes or more."""
        return self.size // 2

    def read(self, name: str) -> np.ndarray:
        """Read one array as float32.

        Raises:
            ValueError: If it cannot be read, holds other numbers than floats of 16 bits or more, or
                a NaN or an infinity.
        """
        values = self.array(name)
        if values.dtype.kind != "f":
            raise ValueError(f"{name} in {self.path} must hold floats, got {values.dtype}")
        return check_finite(values.astype("float32", copy=False), name, self.path)

    def _all_names(self) -> set[str]:
        try:
            with zipfile.ZipFile(self.path) as file:
                return {name.removesuffix(".npy") for name in file.namelist()}
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise ValueError(f"{self.path} is not a complete npz file: {error}") from error

    def array(self, name: str) -> np.ndarray:
        """Read one array as it is.

        Raises:
            ValueError: If it cannot be read.
        """
        # Opened anew for each array, so that no file stays open.
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                return arrays[name]
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"{name} in {self.path} cannot be read: {error}") from error
