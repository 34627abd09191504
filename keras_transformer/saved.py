"""A model and its tokenizer as one folder: written whole, checked when it is read."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import keras

from keras_transformer.config import require
from keras_transformer.files import read_json, write_json
from keras_transformer.layers.base import unfilled
from keras_transformer.models import merged
from keras_transformer.text.single import FILE, TextTokenizer

MODEL = "model.keras"
CONFIG = "config.json"
FORMAT = 1
FLOATS = ("float32", "bfloat16", "float16")
PRECISIONS = (*FLOATS, "int8")


def save_folder(
    folder: str | os.PathLike, model: keras.Model, tokenizer: Any, facts: Mapping[str, Any]
) -> None:
    """Writes `model.keras`, the tokenizer's files and `config.json`.

    What else is in the folder stays. All is written under other names first: if that fails, what
    was there before is untouched. Any backend reads what any other wrote.

    Args:
        folder: made if it is missing.
        model: of one config, LoRA's products still beside its weights or not.
        tokenizer: has `save(folder)` and `fingerprint()`; None: the model reads no text.
        facts: what else `config.json` is to say, plain values.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # A plain copy leaves optimizer and loss behind, which loading would need the classes of.
    plain = merged(model)
    config = {
        "format": FORMAT,
        **facts,
        "tokenizer": tokenizer and tokenizer.fingerprint(),
        "model": model.config.to_dict(),
    }
    with tempfile.TemporaryDirectory(prefix=".saving.", dir=folder) as temporary:
        if tokenizer:
            tokenizer.save(temporary)
        names = os.listdir(temporary)
        plain.save(Path(temporary, MODEL))
        write_json(Path(temporary, CONFIG), config)
        # The tokenizer first and its fingerprint last: a kill in between can leave files of two
        # models, but none that are then taken for one.
        for name in (*names, MODEL, CONFIG):
            if (folder / name).is_dir():  # a keras-hub tokenizer's files
                shutil.rmtree(folder / name)
            os.replace(Path(temporary, name), folder / name)


def read_config(
    folder: str | os.PathLike,
    what: str,
    tokenizer_file: str | None = None,
    precision: str | None = None,
) -> dict[str, Any]:
    """The `config.json` of a folder, once it is seen to be such a one.

    Args:
        folder: what `save_folder` wrote.
        what: a word for it, "translator".
        tokenizer_file: a file that must be there, too; None: it may have none.
        precision: checked as of `load_model`.

    Raises:
        ValueError: if it is none, or the precision is another.
    """
    accepted = f"one of {PRECISIONS} or None"
    require(precision in (*PRECISIONS, None), "precision", precision, accepted)
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is no saved {what}: there is no such folder")
    for name in filter(None, (CONFIG, MODEL, tokenizer_file)):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} is no saved {what}: it has no {name}")
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(f'{folder / CONFIG} is no {what}\'s: it must have "format": {FORMAT}')
    return config


def count_parameters(folder: str | os.PathLike) -> int:
    """How many numbers the weights of a saved folder are, which are not read.

    Raises:
        ValueError: if its `model.keras` cannot be read.
    """
    path, sizes = Path(folder, MODEL), []

    def add(name, entry):
        if isinstance(entry, h5py.Dataset) and "seed_generator" not in name:
            sizes.append(entry.size)

    try:
        with zipfile.ZipFile(path) as archive, archive.open("model.weights.h5") as file:
            h5py.File(file, "r").visititems(add)
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return sum(sizes)


def load_model(
    folder: str | os.PathLike, config: Mapping[str, Any], tokenizer: Any, precision: str | None
) -> keras.Model:
    """The model of a folder.

    Args:
        folder: what `save_folder` wrote.
        config: its `read_config`.
        tokenizer: read from there.
        precision: "float32", "bfloat16" or "float16" for weights and arithmetic of that type;
            "int8" for dense and embedding weights of 8 bits, a scale a row or column; None: as
            the model was saved.

    Raises:
        ValueError: if the tokenizer is not the one that it was trained with, or it cannot be read.
    """
    folder = Path(folder)
    if tokenizer.fingerprint() != config.get("tokenizer"):
        raise ValueError(f"the tokenizer in {folder} is not the one its model was trained with")
    try:
        with unfilled():
            model = keras.saving.load_model(folder / MODEL, compile=False)
    except Exception as error:  # a broken file raises all sorts
        raise ValueError(f"{folder / MODEL} cannot be read: {error}") from error
    if model.quantization:
        accepted = f"{model.quantization!r} or None: {folder} has no other weights"
        require(precision in (model.quantization, None), "precision", precision, accepted)
    elif precision == "int8":
        model.quantize("int8")
    elif precision is not None:
        saved = model
        with unfilled():
            model = type(model).from_config(model.get_config() | {"dtype": precision})
        model.set_weights(saved.get_weights())
    return model


def load_with_tokenizer(
    folder: str | os.PathLike,
    what: str,
    family: type[keras.Model] = keras.Model,
    precision: str | None = None,
) -> tuple[keras.Model, TextTokenizer]:
    """The model of one text and its `TextTokenizer`, as `save_folder` wrote them.

    Args:
        folder: where they are.
        what: a word for it, "language model".
        family: the class that the model must be of.
        precision: as of `load_model`.

    Raises:
        ValueError: if the folder is none, its model is another, or a file of it is broken.
    """
    config = read_config(folder, what, FILE, precision)
    if "task" not in config:  # a translator's, whose tokenizer.json is another
        raise ValueError(f"{folder} is no saved {what} but a translator")
    tokenizer = TextTokenizer.read(folder)
    model = load_model(folder, config, tokenizer, precision)
    if not isinstance(model, family):
        raise ValueError(f"{folder} is no saved {what} but a {type(model).__name__}")
    return model, tokenizer
