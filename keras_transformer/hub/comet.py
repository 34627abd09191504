"""Folders of COMET (`unbabel-comet`): settings in hparams.yaml, weights in a checkpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import keras

from keras_transformer.config import require
from keras_transformer.hub.families.fields import complete
from keras_transformer.hub.families.metric_map import COMET, ENCODER, FIELDS, SETTINGS
from keras_transformer.hub.hugging_face_checkpoint import CONFIG, model_of
from keras_transformer.hub.marian.marian_options import read_yaml
from keras_transformer.hub.tensors import LIGHTNING
from keras_transformer.system.files import read_json
from keras_transformer.system.git_lfs import read_bytes

HPARAMS = "hparams.yaml"
FILES = [HPARAMS, LIGHTNING]


def read_settings(folder: str | os.PathLike) -> dict[str, Any]:
    """Return the checked content of `hparams.yaml`.

    Raises:
        ImportError: If PyYAML is missing.
        ValueError: If the file is broken, or a setting is missing or not supported; names it.
    """
    path = Path(folder, HPARAMS)
    settings = read_yaml(read_bytes(path), path)
    try:
        complete(settings, FIELDS)
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]!r}") from error
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error
    SETTINGS.check(settings, path)
    return settings


def encoder_of(folder: str | os.PathLike) -> str:
    """Return the name of the encoder's model, whose tokenizer and `config.json` COMET uses."""
    name = read_settings(folder).get("pretrained_model")
    where = f"pretrained_model in {Path(folder, HPARAMS)}"
    require(isinstance(name, str) and name != "", where, name, "the name of a model, or a folder")
    return str(name)


def read_metric(folder: str | os.PathLike, encoder: Path, dtype: Any = None) -> keras.Model:
    """Read the model of a folder of COMET.

    Args:
        folder: Folder with `hparams.yaml` and `checkpoints/model.ckpt`, which PyTorch reads without
            running code in it.
        encoder: Folder with the `config.json` of the encoder.
        dtype: Keras dtype policy. None: the global one.

    Raises:
        FileNotFoundError: If a file is missing.
        ImportError: If PyTorch or PyYAML is missing.
        ValueError: If a file is broken, or holds more than tensors and plain values, or a setting
            or a weight is missing or not supported.
    """
    settings = read_settings(folder) | {ENCODER: read_json(encoder / CONFIG)}
    return model_of(settings, COMET, Path(folder, HPARAMS), dtype)
