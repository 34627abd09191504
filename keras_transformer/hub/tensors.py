"""Tensors of a checkpoint folder, in any file format of Hugging Face's layout."""

from __future__ import annotations

import functools
import itertools
import math
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from keras_transformer.hub.gguf.checkpoint import NAME as GGUF
from keras_transformer.hub.gguf.checkpoint import open_tensors
from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import refuse_pointer

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"
LIGHTNING = "checkpoints/model.ckpt"  # of PyTorch Lightning, in which COMET is published
FLOATS = ("F64", "F32", "F16", "BF16")  # names in safetensors
PLAIN = (
    "load it with `transformers`, call `model.dequantize()` and save the result, or use the "
    "checkpoint that it was quantized from"
)


class Checkpoint:
    """The tensors of a folder by name, each read on demand.

    They are read from the first of these that exists: `checkpoints/model.ckpt` of PyTorch
    Lightning; `model.safetensors`; the shards that `model.safetensors.index.json` lists;
    `pytorch_model.bin` or its shards; `model.gguf`, whose tensors are dequantized. PyTorch reads
    its pickles without running code in them.

    Args:
        folder: Folder with one of these.
        prefix: Prefix to add to all names, unless a name already begins with it.
        endings: Pairs of a suffix of names and its replacement.
        part: Pairs of a prefix of names and its replacement. For each name, the first pair whose
            prefix it has is used; a tensor without such a pair is left out. (): all tensors.

    Attributes:
        folder: The folder.
        size: Bytes of all files of weights; for `model.gguf`, two bytes per number.

    Raises:
        FileNotFoundError: If there are no weights, or a shard is missing.
        ImportError: If PyTorch (for a pickle) or `gguf` (for `model.gguf`) is missing.
        ValueError: If a file is broken, or a shard lacks a tensor that the index lists.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        prefix: str = "",
        endings: Iterable[tuple[str, str]] = (),
        part: Iterable[tuple[str, str]] = (),
    ):
        self.folder, self.size = Path(folder), 0
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        if (self.folder / LIGHTNING).is_file():
            self._open_pickled(self.folder / LIGHTNING, "state_dict")
        elif (self.folder / WEIGHTS).is_file():
            self._open(self.folder / WEIGHTS)
        elif (self.folder / INDEX).is_file():
            self._open_shards(INDEX, self._open)
        elif (self.folder / PICKLED).is_file():
            self._open_pickled(self.folder / PICKLED)
        elif (self.folder / PICKLED_INDEX).is_file():
            self._open_shards(PICKLED_INDEX, self._open_pickled)
        elif (self.folder / GGUF).is_file():
            self._open_gguf(self.folder / GGUF)
        else:
            raise FileNotFoundError(
                f"{self.folder} holds no weights: there is no {WEIGHTS}, {INDEX} or {PICKLED}"
            )
        if part:
            readers, self._readers = self._readers, {}
            for name, read in readers.items():
                places = (new + name.removeprefix(old) for old, new in part if name.startswith(old))
                for place in itertools.islice(places, 1):
                    self._readers[place] = read
        if not any(name.startswith(prefix) for name in self._readers):
            self._readers = {prefix + name: read for name, read in self._readers.items()}
        for old, new in endings:
            for name in [name for name in self._readers if name.endswith(old)]:
                self._readers[name.removesuffix(old) + new] = self._readers.pop(name)

    def names(self) -> set[str]:
        """Return the names of all tensors."""
        return set(self._readers)

    def read(self, name: str) -> np.ndarray:
        """Read one tensor as float32.

        Raises:
            ValueError: If it does not hold floats of 16 bits or more, or holds a NaN or an
                infinity.
        """
        return self._readers[name]()

    def _open(self, path):
        """Make the tensors of a safetensors file readable; return their names."""
        refuse_pointer(path)
        self.size += path.stat().st_size
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is not a complete safetensors file: {error}") from error

        def read(name):
            # Opened anew for each tensor: the pages read stay in memory while the file is open.
            with safe_open(path, framework="numpy") as file:
                kind = file.get_slice(name).get_dtype()
                _check_float(kind in FLOATS, path, name, kind)
                return check_finite(
                    file.get_tensor(name).astype(np.float32, copy=False), name, path
                )

        for name in names:
            self._readers[name] = functools.partial(read, name)
        return set(names)

    def _open_shards(self, name, open_one):
        """Make the tensors of all files in an index readable; raise an error if one is missing."""
        index = read_json(self.folder / name)
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.folder / name} is not an index: it has no weight_map")
        if wrong := [x for x in places.values() if not isinstance(x, str)]:
            raise ValueError(f"weight_map in {self.folder / name} must name files, got {wrong[0]}")
        for shard in sorted(set(places.values())):
            path = self.folder / shard
            if Path(shard).name != shard or not path.is_file():
                raise FileNotFoundError(
                    f"{self.folder} is incomplete: its shard {shard} is missing"
                )
            listed = {name for name, place in places.items() if place == shard}
            if missing := sorted(listed - open_one(path)):
                raise ValueError(f"{path} lacks {missing[0]}, which the index lists")

    def _open_gguf(self, path):
        """Make the tensors of a GGUF file readable."""
        readers, count = open_tensors(path)
        self.size += 2 * count

        def read(name):
            return check_finite(readers[name](), name, path)

        for name in readers:
            self._readers[name] = functools.partial(read, name)

    def _open_pickled(self, path, entry=None):
        """Make the tensors of a pickle, or of one of its entries, readable; return their names."""
        refuse_pointer(path)
        self.size += path.stat().st_size
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"{path} is a pickle, which only PyTorch reads safely: install PyTorch, or convert "
                "the checkpoint to safetensors where PyTorch is installed"
            ) from error
        try:
            # A file of PyTorch before 1.6 is not a zip archive and cannot be memory-mapped.
            mapped = zipfile.is_zipfile(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:  # a broken or malicious file raises errors of any class
            raise ValueError(f"{path} cannot be read: {error}") from error
        if entry is not None and isinstance(tensors, dict):
            tensors = tensors.get(entry)
        if not isinstance(tensors, dict):
            kind = type(tensors).__name__
            raise ValueError(f"{path} must hold a dict of tensors, got a {kind}")
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                kind = type(tensor).__name__
                raise ValueError(f"{path} must hold a dict of tensors: {name!r} is a {kind}")

        def read(name):
            kind = tensors[name].dtype
            _check_float(kind.is_floating_point and kind.itemsize > 1, path, name, kind)
            return check_finite(tensors[name].float().numpy(), name, path)

        for name in tensors:
            self._readers[name] = functools.partial(read, name)
        return set(tensors)


def _check_float(is_float, path, name, kind):
    if not is_float:
        raise ValueError(
            f"{name} in {path} must hold floats of 16 bits or more, got {kind}: quantized weights "
            f"are not supported; {PLAIN}"
        )


def check_finite(values: np.ndarray, name: str, path: str | os.PathLike) -> np.ndarray:
    """Return the values of a tensor; raise ValueError if there is a NaN or an infinity."""
    # With a NaN or an infinity, the minimum or the maximum is not finite. To compute them needs no
    # memory, unlike `np.isfinite`.
    ends = (float(values.min()), float(values.max())) if values.size else ()
    if not all(map(math.isfinite, ends)):
        count = int((~np.isfinite(values)).sum())
        raise ValueError(
            f"{name} in {path} holds {count} numbers that are NaN or infinite, of {values.size}: "
            "the file is damaged, or training diverged"
        )
    return values
