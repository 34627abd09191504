"""Save the full training state as a folder, atomically, and restore it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.backend import random_state, set_random_state
from keras_transformer.checkpoints.weights import (
    WEIGHTS,
    check_same,
    load_weights,
    read_weights,
    save_weights,
    write_weights,
)
from keras_transformer.config import require
from keras_transformer.system.files import read_json, replacing, write_json

CHECKPOINTS = "checkpoints"  # in a run's folder
OPTIMIZER = "optimizer.safetensors"
RANDOM = "random.safetensors"
RUNNING_METRICS = "metrics.safetensors"
STATE = "state.json"
UNFINISHED = "unfinished"  # state within an epoch; those at the ends of epochs are `epoch-0007`
_SEED = "seed "


def epoch_paths(folder: str | os.PathLike) -> list[Path]:
    """Return the states saved at the ends of epochs, oldest first."""
    return sorted(
        path
        for path in Path(folder).glob("epoch-*")
        if re.fullmatch(r"epoch-\d+", path.name) and (path / STATE).is_file()
    )


def latest(folder: str | os.PathLike) -> Path | None:
    """Return the latest state in a folder; None if there is none.

    Raises:
        ValueError: If a `state.json` is broken.
    """
    found = epoch_paths(folder)[-1:]
    unfinished = Path(folder, UNFINISHED)
    if (unfinished / STATE).is_file():
        epochs = len(read_state(found[0])["history"]) if found else 0
        # A kill can leave one that is older than the state at the end of its epoch.
        if len(read_state(unfinished)["history"]) == epochs:
            return unfinished
    return found[0] if found else None


def read_state(path: str | os.PathLike) -> dict[str, Any]:
    """Return the contents of a state's `state.json`.

    Returns:
        `run`, plain values that identify the run; `history`, each epoch's metrics by name; within
        an epoch also `step`, the batches done, and `seconds`, the time they took.

    Raises:
        ValueError: If it is broken.
    """
    path = Path(path, STATE)
    state = read_json(path)
    whole = isinstance(state, dict) and isinstance(state.get("run"), dict)
    whole = whole and isinstance(state.get("history"), list)
    whole = whole and all(
        isinstance(logs, dict) and all(isinstance(x, int | float) for x in logs.values())
        for logs in state["history"]
    )
    whole = whole and isinstance(state.get("step", 0), int)
    whole = whole and isinstance(state.get("seconds", 0.0), int | float)
    shown = f"{state!r:.80}"
    require(whole, str(path), shown, "an object with the run and the metrics of each epoch")
    return state


def write_state(
    path: str | os.PathLike, model: keras.Model, state: dict[str, Any], *, metrics: bool = False
) -> None:
    """Write weights, optimizer, random states and `state.json`.

    Args:
        path: Output folder; an existing one is replaced.
        model: A compiled model.
        state: Contents of `state.json`, as `read_state` returns them.
        metrics: Whether to save the running means of the metrics, which a state within an epoch
            needs.

    Raises:
        OSError: If a file cannot be written; the folder is left unchanged.
    """
    with replacing(path) as folder:
        folder.mkdir()
        write_weights(folder / WEIGHTS, model)
        save_weights(folder / OPTIMIZER, _values(model.optimizer.variables))
        seeds = {f"{_SEED}{k}": v for k, v in _values(_seeds(model)).items()}
        save_weights(folder / RANDOM, seeds | random_state())
        if metrics:
            save_weights(folder / RUNNING_METRICS, _values(model.metrics_variables))
        write_json(folder / STATE, state)


def restore_state(path: str | os.PathLike, model: keras.Model) -> dict[str, np.ndarray]:
    """Restore the weights, optimizer and seeds of a compiled model from a state.

    Returns:
        The random state of the backend, for `backend.set_random_state`.

    Raises:
        ValueError, FileNotFoundError: If a file is missing, damaged or of another model.
    """
    path = Path(path)
    with _damage_of(path):
        random, values = read_weights(path / RANDOM), read_weights(path / OPTIMIZER)
        seeds = {k.removeprefix(_SEED): v for k, v in random.items() if k.startswith(_SEED)}
        others = {k: v for k, v in random.items() if not k.startswith(_SEED)}
        before = random_state()
        try:
            set_random_state(others)
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{path / RANDOM} does not fit: {error}") from error
        finally:
            set_random_state(before)
        model.optimizer.build(model.trainable_variables)
        _check(model.optimizer.variables, values, path / OPTIMIZER)
        _assign(_seeds(model), seeds, path / RANDOM)
        load_weights(path / WEIGHTS, model)
        _assign(model.optimizer.variables, values, path / OPTIMIZER)
    return others


def restore_metrics(path: str | os.PathLike, model: keras.Model) -> None:
    """Restore the running means of a model's metrics from a state within an epoch.

    Raises:
        ValueError, FileNotFoundError: If the file is missing, damaged or of another model.
    """
    with _damage_of(path):
        path = Path(path, RUNNING_METRICS)
        _assign(model.metrics_variables, read_weights(path), path)


@contextlib.contextmanager
def _damage_of(path):
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"{error}; remove {path} to resume from an earlier state") from error


def _seeds(model):
    """Return the seed generators' states, which `model.weights` and `.keras` files leave out."""
    return [variable for variable in model.variables if "seed_generator" in variable.path]


def _values(variables: Sequence[keras.Variable]) -> dict[str, np.ndarray]:
    # By index: the paths contain counters that depend on what else the process has made.
    return {f"{i:05d}": np.asarray(keras.ops.convert_to_numpy(v)) for i, v in enumerate(variables)}


def _check(variables, values, path):
    expected = {f"{i:05d}": tuple(variable.shape) for i, variable in enumerate(variables)}
    try:
        check_same(expected, {name: x.shape for name, x in values.items()}, "the run's")
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error


def _assign(variables, values, path):
    _check(variables, values, path)
    for i, variable in enumerate(variables):
        variable.assign(values[f"{i:05d}"])
