"""The model of a saved folder: a whole model, or an adapter and the base that it names."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import keras

from keras_transformer.config import require
from keras_transformer.hub import hugging_face_checkpoint
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.saved.contents import ADAPTER, CONFIG, MODEL, is_saved
from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.weights.adapters import Adapter
from keras_transformer.weights.sizes import sized_by

MOST_BYTES = 1 << 24  # maximum bytes of the config in a `.keras` file
# Maximum ratio of the unpacked bytes of weights to the size of their `.keras` file: weights can
# hardly be compressed.
_UNPACKED = 2


def facts_of(adapter: Adapter, base: Path, folder: Path) -> dict[str, Any]:
    """Return the entry "adapter" of the `config.json` of an adapter.

    Args:
        adapter: The adapter.
        base: Folder of its base: a saved model, or a checkpoint in Hugging Face's layout.
        folder: Folder that the adapter will be written to.

    Raises:
        ValueError: If the base has no `config.json`, or the folder already holds a whole model.
    """
    require((base / CONFIG).is_file(), "base", str(base), "the folder of a saved model")
    accepted = f"a folder without a {MODEL}, for an adapter"
    require(not (folder / MODEL).exists(), "folder", str(folder), accepted)
    # Relative, so that folders that move together still find each other.
    place = Path(os.path.relpath(base.resolve(), folder.resolve())).as_posix()
    return {"base": place, "rank": adapter.rank, "alpha": adapter.alpha}


def read_weights(folder: Path, config: Mapping[str, Any]) -> ConfiguredModel:
    """Return the model of a saved folder; for an adapter, its base with the adapter's changes.

    Args:
        folder: Folder that `save_folder` wrote.
        config: Its `config.json`.

    Raises:
        ValueError: If a file is broken, or an adapter's base is missing or not the one that it was
            trained on.
    """
    facts = config.get("adapter")
    if facts is None:
        return _whole(folder / MODEL)
    adapter = Adapter.read(folder, facts)
    place = facts.get("base")
    require(isinstance(place, str), f'"base" of the adapter {folder}', place, "a path")
    base = Path(os.path.normpath(folder / place))
    if not (base / CONFIG).is_file():
        raise ValueError(
            f"{folder} is an adapter of {base}, which is not there: write the place of its base, "
            f'relative to the adapter, into "adapter" of {folder / CONFIG}'
        )
    if is_saved(base):
        model = read_weights(base, read_json(base / CONFIG))
    else:
        model = hugging_face_checkpoint.read_model(base, "float32")
    try:
        return adapter.on(model, config_of(model, config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder} is not an adapter of {base}: {error}") from error


def config_of(model: ConfiguredModel, config: Mapping[str, Any]) -> Any:
    """Return the config of an adapter's model, which has the class of its base.

    Args:
        model: The base.
        config: The adapter's `config.json`.

    Raises:
        TypeError, ValueError: If it is the config of another class.
    """
    return type(model).config_class.from_dict(dict(config["model"]))


def _whole(path: Path) -> ConfiguredModel:
    """Return the model in a `.keras` file, after checking its sizes against its weights."""
    try:
        kind, config = _kind_and_config(path)
        if kind is not None:
            sizes = kind.config_class.from_dict(config["config"]["config"])
            stored = _sizes_of_weights(path)
            with sized_by(sizes, len(stored), sum(stored)):
                return keras.saving.load_model(path, compile=False)
    except Exception as error:  # a broken file can raise any error
        raise unreadable(path, error) from error
    name = str(config.get("class_name"))
    raise ValueError(f"{path} is a {name:.100}, not a model of keras_transformer")


def _kind_and_config(path: Path) -> tuple[type[ConfiguredModel] | None, dict[str, Any]]:
    """Return the class of the model in a `.keras` file, None if not ours, and its config."""
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(CONFIG).file_size
        require(size <= MOST_BYTES, f"bytes of its {CONFIG}", size, f"at most {MOST_BYTES}")
        config = json.loads(archive.read(CONFIG))
    kind = keras.saving.get_registered_object(config["registered_name"])
    is_ours = isinstance(kind, type) and issubclass(kind, ConfiguredModel)
    return kind if is_ours else None, config


def count_parameters(folder: str | os.PathLike) -> int:
    """Return the number of parameters in a saved folder, without loading its model.

    For an adapter, only its own parameters are counted, not those of its base.

    Raises:
        ValueError: If its file of weights cannot be read.
    """
    path = Path(folder, MODEL)
    if Path(folder, ADAPTER).is_file():
        return Adapter.size_of(folder)
    try:
        return sum(_sizes_of_weights(path))
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError) as error:
        raise unreadable(path, error) from error


def _sizes_of_weights(path: Path) -> list[int]:
    """Return the number of elements of each weight in a `.keras` file.

    Raises:
        ValueError: If the weights have more than `_UNPACKED` times the bytes of the file: HDF5
            stores no bytes for elements that were never written, and a zip archive few for zeros.
    """
    sizes, claimed = [], []

    def add(name: str, entry: Any) -> None:
        claimed.append(entry.nbytes if isinstance(entry, h5py.Dataset) else 0)
        is_weight = not re.search(r"seed_generator|/vars/format$", name)
        if not isinstance(entry, h5py.Dataset) or not is_weight:
            return
        if levels := re.search(r"/vars/levels([48])$", name):
            sizes.append(entry.size * 8 // int(levels[1]))
        # Other uint8 arrays are the remainders of int8 weights, which are counted already. Arrays
        # named `scales` belong to levels.
        elif entry.dtype != "uint8" and not name.endswith("/vars/scales"):
            sizes.append(entry.size)

    with zipfile.ZipFile(path) as archive, _seekable(archive, "model.weights.h5") as file:
        h5py.File(file, "r").visititems(add)
        size, whole = path.stat().st_size, archive.getinfo("model.weights.h5").file_size
    most, unpacked = _UNPACKED * size, max(whole, sum(claimed))
    require(unpacked <= most, "bytes of its weights", unpacked, f"at most {most}")
    return sizes


@contextlib.contextmanager
def _seekable(archive: zipfile.ZipFile, name: str) -> Iterator[Any]:
    """Yield a file of an archive; if it is not compressed, seeking in it takes no time.

    To seek backwards, `zipfile` (Python 3.11) reads again from the beginning: listing the weights
    in a file of 540 MB took 110 seconds.
    """
    with archive.open(name) as file:
        info = archive.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            yield file
            return
    with open(str(archive.filename), "rb") as whole:
        whole.seek(info.header_offset + 26)
        start = info.header_offset + 30 + sum(struct.unpack("<HH", whole.read(4)))
        yield _Part(whole, start, info.file_size)


class _Part(io.RawIOBase):
    """A file-like object that reads a part of an open file."""

    def __init__(self, file: BinaryIO, start: int, size: int):
        self._file, self._start, self._size, self._place = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = 0) -> int:
        self._place = max(0, offset + (0, self._place, self._size)[whence])
        return self._place

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._place)
        data = self._file.read(min(len(buffer), max(0, self._size - self._place)))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def unreadable(path: Path, error: Exception) -> ValueError:
    """Return the error to raise when a file of a model cannot be read."""
    try:
        refuse_pointer(path)
    except (OSError, ValueError) as reason:
        return ValueError(str(reason))
    if not zipfile.is_zipfile(path):
        return ValueError(f"{path} cannot be read: it is damaged, not a complete zip archive")
    told = " ".join(str(error).split())  # Keras's messages hold whole configs
    return ValueError(f"{path} cannot be read: {type(error).__name__}: {told:.300}")
