"""The mean of several checkpoints' weights, which translates better than the last one alone."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from keras_transformer.checkpoints.weights import check_same, read_weights, save_weights


def average_weights(paths: Iterable[str | os.PathLike]) -> dict[str, np.ndarray]:
    """The mean of each weight over checkpoints (Vaswani et al. 2017, section 6.1).

    Summed in float64, with one checkpoint in memory at a time; the result has the first one's
    precision.

    Args:
        paths: safetensors files, or checkpoint folders with a `weights.safetensors`; at least
            one. The paper takes the last 5 (base) or 20 (big).

    Raises:
        FileNotFoundError, ValueError: As `read_weights`; ValueError also without any path, or
            if a checkpoint's names or shapes are not those of the first.
    """
    if isinstance(paths, str | os.PathLike):
        raise ValueError(f"paths must be a list of paths, got the one path {str(paths)!r}")
    paths = list(paths)
    if not paths:
        raise ValueError("paths must name at least one checkpoint, got none")
    first = read_weights(paths[0])
    shapes = {name: value.shape for name, value in first.items()}
    dtypes = {name: value.dtype for name, value in first.items()}
    totals = {name: value.astype("float64") for name, value in first.items()}
    del first
    for path in paths[1:]:
        weights = read_weights(path)
        found = {name: value.shape for name, value in weights.items()}
        try:
            check_same(shapes, found, str(paths[0]))
        except ValueError as error:
            raise ValueError(f"{path} does not fit: {error}") from error
        for name, value in weights.items():
            totals[name] += value
    return {name: (total / len(paths)).astype(dtypes[name]) for name, total in totals.items()}


def average(paths: Iterable[str | os.PathLike], out: str | os.PathLike) -> None:
    """Writes the mean of several checkpoints as one safetensors file.

    Args:
        paths: as of `average_weights`.
        out: the file to write; it may be one of `paths`.

    Raises:
        FileNotFoundError, ValueError: As `average_weights`.
    """
    save_weights(out, average_weights(paths))
