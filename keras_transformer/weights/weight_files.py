"""Weights of a model by name: read and write safetensors files, check them against a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import keras
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from keras_transformer.models.quantized import blocks_of
from keras_transformer.system.files import replacing
from keras_transformer.weights.values import METADATA, Values

WEIGHTS = "weights.safetensors"


def weights_of(model: keras.Model) -> dict[str, np.ndarray]:
    """Return the weights by Keras path, such as "encoder/block_0/attention/output/kernel".

    Matrices in blocks of 4 or 8 bits are returned in float32.

    Raises:
        ValueError: If two weights have the same path.
    """
    check_paths(model)
    blocks = blocks_of(model)
    rounded = {id(x) for layer in blocks.values() for x in (layer.levels, layer.scales)}
    floats = (weight for weight in model.weights if id(weight) not in rounded)
    weights = {w.path: np.asarray(keras.ops.convert_to_numpy(w)) for w in floats}
    return weights | {path: layer.float_matrix() for path, layer in blocks.items()}


def check_paths(model: keras.Model) -> None:
    """Raise ValueError if two weights of a model have the same path."""
    paths = [weight.path for weight in model.weights]
    if twice := sorted({path for path in paths if paths.count(path) > 1}):
        raise ValueError(f"model must have one weight per path, got several named {_some(twice)}")


def assign_weights(weights: Mapping[str, np.ndarray], model: keras.Model) -> None:
    """Assign weights to a model, all of them or none.

    Args:
        weights: Arrays by Keras path, as `weights_of` returns them.
        model: A model whose weights have exactly these paths and shapes.

    Raises:
        ValueError: If a weight is missing, unexpected or of another shape; the message names it.
    """
    expected = {weight.path: tuple(weight.shape) for weight in model.weights}
    check_same(expected, {path: value.shape for path, value in weights.items()}, "the model")
    for weight in model.weights:
        weight.assign(weights[weight.path])


def read_weights(path: str | os.PathLike, foreign: bool = False) -> dict[str, np.ndarray]:
    """Return arrays by name, from a safetensors file or from the slices of several processes.

    Args:
        path: The file, or a checkpoint folder with a `weights.safetensors`.
        foreign: Whether another program wrote the file, without the number of our format.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a complete safetensors file, or of another format.
    """
    path = Path(path)
    if path.is_dir():
        path = path / WEIGHTS
    values = Values(path, foreign)
    return {name: values.read(name) for name in values.shapes}


def write_weights(path: str | os.PathLike, model: keras.Model) -> None:
    """Write the model's weights as a safetensors file, atomically."""
    save_weights(path, weights_of(model))


def save_weights(path: str | os.PathLike, weights: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name as a safetensors file, atomically."""
    # The format stores raw memory, and would store a transposed array wrongly.
    contiguous = {name: np.asarray(value, order="C") for name, value in weights.items()}
    with replacing(path) as temporary:
        try:
            # `transformers` requires the entry "format".
            save_file(contiguous, temporary, metadata={"format": "pt"} | METADATA)
        except SafetensorError as error:
            raise OSError(f"{path} could not be written: {error}") from error


def load_weights(path: str | os.PathLike, model: keras.Model) -> None:
    """Load the weights of a file or checkpoint folder into a model.

    Raises:
        FileNotFoundError, ValueError: As in `read_weights` and `assign_weights`.
    """
    weights = read_weights(path)
    try:
        assign_weights(weights, model)
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error


def check_same(expected: Mapping[str, tuple], found: Mapping[str, tuple], owner: str) -> None:
    """Raise ValueError, naming the differences, unless the names and shapes are equal."""
    problems = []
    if missing := [name for name in expected if name not in found]:
        problems.append(f"missing: {_some(missing)}")
    if unexpected := [name for name in found if name not in expected]:
        problems.append(f"unexpected: {_some(unexpected)}")
    if other := [
        f"{name} {found[name]} instead of {expected[name]}"
        for name in expected
        if name in found and tuple(found[name]) != tuple(expected[name])
    ]:
        problems.append(f"wrong shape: {_some(other)}")
    if problems:
        raise ValueError(
            f"weights must have the names and shapes of {owner}: {'; '.join(problems)}"
        )


def _some(names: list[str], limit: int = 5) -> str:
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
