"""Mean weights of checkpoints, which usually translate better than the last checkpoint."""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from keras_transformer.weights.weight_files import check_same, read_weights, save_weights


def average_weights(paths: Iterable[str | os.PathLike]) -> dict[str, np.ndarray]:
    """Return the mean of each weight over checkpoints (Vaswani et al. 2017, section 6.1).

    The sums are in float64; one checkpoint at a time is in memory beside them. The result has the
    dtypes of the first checkpoint.

    Args:
        paths: At least one safetensors file, or checkpoint folder with a `weights.safetensors`.
            The paper averages the last 5 (base) or 20 (big).

    Raises:
        FileNotFoundError, ValueError: As in `read_weights`; ValueError also if `paths` is empty or
            a single path, or the names or shapes of a checkpoint differ from those of the first.
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
        try:
            check_same(shapes, {k: x.shape for k, x in weights.items()}, str(paths[0]))
        except ValueError as error:
            raise ValueError(f"{path} does not fit: {error}") from error
        for name, value in weights.items():
            totals[name] += value
    return {name: (total / len(paths)).astype(dtypes[name]) for name, total in totals.items()}


def average(paths: Iterable[str | os.PathLike], out: str | os.PathLike) -> None:
    """Write the mean of several checkpoints as one safetensors file.

    Args:
        paths: As in `average_weights`.
        out: The file to write; it may be one of `paths`.

    Raises:
        FileNotFoundError, ValueError: As in `average_weights`.
    """
    save_weights(out, average_weights(paths))
