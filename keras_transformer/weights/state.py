"""Save the full training state as a folder, atomically, and restore it."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import (
    differ_by_process,
    num_replicas,
    random_state,
    set_random_state,
    summed,
)
from keras_transformer.config import require
from keras_transformer.distribution.processes import current
from keras_transformer.system.files import complete, read_json, write_json
from keras_transformer.weights.slices import (
    assign_variables,
    check_variables,
    write_variables,
)
from keras_transformer.weights.values import Values, file_of
from keras_transformer.weights.weight_files import (
    WEIGHTS,
    check_paths,
    check_same,
    read_weights,
    save_weights,
)

CHECKPOINTS = "checkpoints"  # in a run's folder
OPTIMIZER = "optimizer.safetensors"
RANDOM = "random.safetensors"
RUNNING_METRICS = "metrics.safetensors"
STATE = "state.json"
UNFINISHED = "unfinished"  # folder of a state within an epoch; that after epoch 7 is `epoch-0007`
_SEED = "seed "


def epoch_paths(folder: str | os.PathLike) -> list[Path]:
    """Return the paths of the states saved at the ends of epochs, oldest first."""
    return sorted(
        path
        for path in Path(folder).glob("epoch-*")
        if re.fullmatch(r"epoch-\d+", path.name) and (path / STATE).is_file()
    )


def latest(folder: str | os.PathLike) -> Path | None:
    """Return the path of the latest state in a folder; None if there is no state.

    Raises:
        ValueError: If a `state.json` is broken.
    """
    complete(folder)
    paths = epoch_paths(folder)[-1:]
    unfinished = Path(folder, UNFINISHED)
    if (unfinished / STATE).is_file():
        epochs = len(read_state(paths[0])["history"]) if paths else 0
        # A killed process can leave an `unfinished` that is older than the end of its epoch.
        if len(read_state(unfinished)["history"]) == epochs:
            return unfinished
    return paths[0] if paths else None


def read_state(path: str | os.PathLike) -> dict[str, Any]:
    """Return the contents of a state's `state.json`.

    Returns:
        `run`, plain values that identify the run, and `history`, each epoch's metrics by name. A
        state within an epoch also has `step`, the number of finished batches, and `seconds`, the
        time that they took.

    Raises:
        ValueError: If the file is broken.
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
    """Write weights, optimizer, random states and `state.json`; all processes must call it.

    Args:
        path: Output folder; an existing one is replaced.
        model: A compiled model.
        state: Contents of `state.json`, as `read_state` returns them.
        metrics: Whether to save the state of the metrics, which a state within an epoch needs.

    Raises:
        OSError: If a file cannot be written; the folder is left unchanged.
    """
    team = current()
    with team.replacing(path) as folder:
        write_variables(folder / WEIGHTS, _by_path(model))
        write_variables(folder / OPTIMIZER, _numbered(model.optimizer.variables))
        if metrics:
            with summed(model.metrics_variables):
                write_variables(folder / RUNNING_METRICS, _numbered(model.metrics_variables))
        generator_states = random_state()
        if team.index == 0:
            seeds = {f"{_SEED}{k}": x for k, x in _values(_seeds(model)).items()}
            save_weights(folder / RANDOM, seeds | generator_states)
            write_json(folder / STATE, state)
        elif generator_states:
            save_weights(file_of(folder / RANDOM, team.index), generator_states)


def restore_state(path: str | os.PathLike, model: keras.Model) -> dict[str, np.ndarray]:
    """Restore the weights, optimizer and seeds of a compiled model from a state.

    Returns:
        The random state of the backend, for `backend.set_random_state`.

    Raises:
        ValueError, FileNotFoundError: If a file is missing, damaged or of another model.
    """
    path = Path(path)
    with _damage_of(path):
        random, values = read_weights(path / RANDOM), Values(path / OPTIMIZER)
        seeds = {k.removeprefix(_SEED): v for k, v in random.items() if k.startswith(_SEED)}
        others = {k: v for k, v in random.items() if not k.startswith(_SEED)}
        file = file_of(path / RANDOM, current().index)
        others = read_weights(file) if file.is_file() else others
        before = random_state()
        try:
            set_random_state(others)
            # If fewer processes wrote the state, this one draws other numbers than process 0.
            if not file.is_file():
                differ_by_process()
                others = random_state()
        except (RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"{path / RANDOM} does not fit: {error}") from error
        finally:
            set_random_state(before)
        model.optimizer.build(model.trainable_variables)
        optimizer = _numbered(model.optimizer.variables)
        with _not_fitting(path / OPTIMIZER):
            check_variables(values, optimizer, "the run")
        with _not_fitting(path / RANDOM):
            own_seeds = _numbered(_seeds(model))
            check_same({k: x.shape for k, x in own_seeds.items()}, _shapes(seeds), "the run")
        with _not_fitting(path / WEIGHTS):
            assign_variables(Values(path / WEIGHTS), _by_path(model), "the model")
        for name, variable in own_seeds.items():
            variable.assign(seeds[name])
        assign_variables(values, optimizer, "the run")
    return others


def restore_metrics(path: str | os.PathLike, model: keras.Model) -> None:
    """Restore the state of a model's metrics from a state within an epoch.

    Raises:
        ValueError, FileNotFoundError: If the file is missing, damaged or of another model.
    """
    with _damage_of(path):
        path = Path(path, RUNNING_METRICS)
        with _not_fitting(path):
            assign_variables(Values(path), _numbered(model.metrics_variables), "the run")
    if num_replicas() > 1 and current().index:  # process 0 has the sums over all processes
        for variable in model.metrics_variables:
            variable.assign(ops.zeros_like(variable.value))


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


def _by_path(model):
    check_paths(model)
    return {weight.path: weight for weight in model.weights}


def _numbered(variables):
    # Not by path: the paths contain counters that depend on what else the process has made.
    return {f"{i:05d}": variable for i, variable in enumerate(variables)}


def _values(variables):
    return {k: np.asarray(ops.convert_to_numpy(v)) for k, v in _numbered(variables).items()}


def _shapes(values):
    return {name: x.shape for name, x in values.items()}


@contextlib.contextmanager
def _not_fitting(path):
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path} does not fit: {error}") from error
