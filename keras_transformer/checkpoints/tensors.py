"""The tensors of a checkpoint's folder, in any of the files that Hugging Face's layout has."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_transformer.system.files import read_json

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
FLOATS = ("F64", "F32", "F16", "BF16")  # what safetensors calls them
PLAIN = (
    "read it with `transformers`, call `model.dequantize()` and save that, or take the checkpoint "
    "that it was made of"
)


class Checkpoint:
    """The tensors of a folder by name, each read when it is asked for.

    They lie in `model.safetensors`, in the shards that `model.safetensors.index.json` lists, or in
    `pytorch_model.bin` or its shards, which PyTorch reads without running anything in them.

    Args:
        folder: with one of these.
        prefix: put before all names, if none has it.
        endings: pairs of an end of names and what it is read as.

    Raises:
        FileNotFoundError: if there is none, or a shard is missing.
        ValueError: if a file is broken, or a shard lacks what the index says is in it.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        prefix: str = "",
        endings: Iterable[tuple[str, str]] = (),
    ):
        self.folder = Path(folder)
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        if (self.folder / WEIGHTS).is_file():
            self._open(self.folder / WEIGHTS)
        elif (self.folder / INDEX).is_file():
            self._open_shards(INDEX, self._open)
        elif (self.folder / PICKLED).is_file():
            self._open_pickled(self.folder / PICKLED)
        elif (self.folder / PICKLED_INDEX).is_file():
            self._open_shards(PICKLED_INDEX, self._open_pickled)
        else:
            raise FileNotFoundError(
                f"{self.folder} holds no weights: there is no {WEIGHTS}, {INDEX} or {PICKLED}"
            )
        if not any(name.startswith(prefix) for name in self._readers):
            self._readers = {prefix + name: read for name, read in self._readers.items()}
        for old, new in endings:
            for name in [name for name in self._readers if name.endswith(old)]:
                self._readers[name.removesuffix(old) + new] = self._readers.pop(name)

    def names(self) -> set[str]:
        """Return the names of all tensors."""
        return set(self._readers)

    def read(self, name: str) -> np.ndarray:
        """One tensor; 16-bit floats come as float32, which holds them exactly."""
        return self._readers[name]()

    def _open(self, path):
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is no whole safetensors file: {error}") from error

        def read(name):
            # Opened anew for each: pages of an open file that were read stay in memory.
            with safe_open(path, framework="numpy") as file:
                kind = file.get_slice(name).get_dtype()
                _check_float(kind in FLOATS, path, name, kind)
                return _as_float32(file.get_tensor(name))

        for name in names:
            self._readers[name] = functools.partial(read, name)
        return set(names)

    def _open_shards(self, name, open_one):
        index = read_json(self.folder / name)
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.folder / name} is no index: it has no weight_map")
        if wrong := [x for x in places.values() if not isinstance(x, str)]:
            raise ValueError(f"weight_map in {self.folder / name} must name files, got {wrong[0]}")
        for shard in sorted(set(places.values())):
            path = self.folder / shard
            if Path(shard).name != shard or not path.is_file():
                raise FileNotFoundError(f"{self.folder} is not whole: its shard {shard} is missing")
            listed = {name for name, place in places.items() if place == shard}
            if missing := sorted(listed - open_one(path)):
                raise ValueError(f"{path} lacks {missing[0]}, which the index says is in it")

    def _open_pickled(self, path):
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"{path} is a pickle, which only PyTorch reads safely: install PyTorch, or turn "
                "the checkpoint into safetensors where it is"
            ) from error
        try:
            # Of PyTorch before 1.6 the file is no archive, and cannot be mapped.
            mapped = zipfile.is_zipfile(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:  # a broken or a hostile file raises all sorts
            raise ValueError(f"{path} cannot be read: {error}") from error
        if not isinstance(tensors, dict):
            kind = type(tensors).__name__
            raise ValueError(f"{path} must hold tensors by their names, got a {kind}")
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                kind = type(tensor).__name__
                raise ValueError(f"{path} must hold tensors by their names: {name!r} is a {kind}")

        def read(name):
            kind = tensors[name].dtype
            _check_float(kind.is_floating_point and kind.itemsize > 1, path, name, kind)
            return tensors[name].float().numpy()

        for name in tensors:
            self._readers[name] = functools.partial(read, name)
        return set(tensors)


def _check_float(fits, path, name, kind):
    if not fits:
        raise ValueError(
            f"{name} in {path} must hold floats of 16 bits or more, got {kind}: weights that were "
            f"quantized are not read; {PLAIN}"
        )


def _as_float32(array: np.ndarray) -> np.ndarray:
    return array if array.dtype == np.float32 else array.astype(np.float32)
