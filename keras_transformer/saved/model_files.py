"""The model of a saved folder: a whole one, or an adapter and the base that it names."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

from keras_transformer.config import require
from keras_transformer.hub import hugging_face
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.saved.contents import ADAPTER, CONFIG, MODEL, is_saved
from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import refuse_pointer
from keras_transformer.weights.adapters import Adapter
from keras_transformer.weights.sizes import sized_by

MOST_BYTES = 1 << 24  # maximum bytes of the config in a `.keras` file
# Maximum ratio of the unpacked bytes of weights to their `.keras` file; weights hardly compress.
_UNPACKED = 2


def facts_of(adapter: Adapter, base: Path, folder: Path) -> dict[str, Any]:
    """Return the entry "adapter" of the `config.json` of an adapter.

    Args:
        adapter: The adapter.
        base: Folder of its base: a saved model, or a checkpoint in Hugging Face's layout.
        folder: Folder that the adapter will be written to.

    Raises:
        ValueError: If the base is neither, or the folder already holds a whole model.
    """
    require((base / CONFIG).is_file(), "base", str(base), "the folder of a saved model")
    accepted = f"a folder without a {MODEL}, for an adapter"
    require(not (folder / MODEL).exists(), "folder", str(folder), accepted)
    # Relative, so that folders that move together still find each other.
    place = Path(os.path.relpath(base.resolve(), folder.resolve())).as_posix()
    return {"base": place, "rank": adapter.rank, "alpha": adapter.alpha}


def read_weights(folder: Path, config: Mapping[str, Any]) -> ConfiguredModel:
    """Return the model of a saved folder; of an adapter, its base with the adapter's changes.

    Args:
        folder: Folder that `save_folder` wrote.
        config: Its `config.json`.

    Raises:
        ValueError: If a file is broken, or the base is missing or another one.
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
        model = hugging_face.read_model(base, "float32")
    try:
        return adapter.on(model, config_of(model, config))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder} is not an adapter of {base}: {error}") from error


def config_of(model: ConfiguredModel, config: Mapping[str, Any]) -> Any:
    """Return the config of an adapter's model, if it is of the class of this model.

    Raises:
        TypeError, ValueError: If it is not.
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
    """Return the class of the model in a `.keras` file, if it is one of ours, and its config."""
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(CONFIG).file_size
        require(size <= MOST_BYTES, f"bytes of its {CONFIG}", size, f"at most {MOST_BYTES}")
        config = json.loads(archive.read(CONFIG))
    kind = keras.saving.get_registered_object(config["registered_name"])
    is_ours = isinstance(kind, type) and issubclass(kind, ConfiguredModel)
    return kind if is_ours else None, config


def count_parameters(folder: str | os.PathLike) -> int:
    """Return the number of parameters of a saved folder, without loading its model.

    For an adapter, the parameters of its base are not counted.

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
        ValueError: If the file claims more elements than it holds: HDF5 has no bytes for elements
            that were never written, and a zip archive has few for zeros.
    """
    sizes, claimed = [], []

    def add(name: str, entry: Any) -> None:
        claimed.append(entry.nbytes if isinstance(entry, h5py.Dataset) else 0)
        is_weight = not re.search(r"seed_generator|/vars/format$", name)
        # uint8 arrays are the remainders of weights that are counted already.
        if isinstance(entry, h5py.Dataset) and is_weight and entry.dtype != "uint8":
            sizes.append(entry.size)

    with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as file:
        h5py.File(file, "r").visititems(add)
        size, whole = path.stat().st_size, archive.getinfo("model.weights.h5").file_size
    most, unpacked = _UNPACKED * size, max(whole, sum(claimed))
    require(unpacked <= most, "bytes of its weights", unpacked, f"at most {most}")
    return sizes


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
