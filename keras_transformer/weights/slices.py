"""Variables in checkpoint files: each process writes the slices that it holds.

If process 0 holds all values, it writes one safetensors file. Otherwise each process writes its own
file, and process 0 an index of all slices. Any number of processes with any layout can read both
forms.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import keras
import numpy as np

from keras_transformer.backend import assign_slices, slices_of
from keras_transformer.distribution.processes import current
from keras_transformer.system.files import write_json
from keras_transformer.weights.values import METADATA, Values, file_of, index_of, key_of
from keras_transformer.weights.weight_files import check_same, save_weights


def write_variables(path: str | os.PathLike, variables: Mapping[str, keras.Variable]) -> None:
    """Write variables by name; all processes of the run must call it.

    Args:
        path: The safetensors file; the files of slices are named after it.
        variables: The variables, in the same order in all processes.

    Raises:
        OSError: If a file cannot be written.
    """
    path, team = Path(path), current()
    held = {name: slices_of(variable, team.index) for name, variable in variables.items()}
    places = {name: [start for start, _ in slices] for name, slices in held.items() if slices}
    places_of = team.exchange(places)
    if not any(places_of[1:]):
        if team.index == 0:
            save_weights(path, {name: _joined(slices) for name, slices in held.items()})
        return
    arrays = {key_of(name, start): x for name, slices in held.items() for start, x in slices}
    save_weights(file_of(path, team.index), arrays)
    if team.index == 0:
        index = {
            name: {
                "shape": list(variable.shape),
                "slices": [
                    [number, start]
                    for number, of in enumerate(places_of)
                    for start in of.get(name, [])
                ],
            }
            for name, variable in variables.items()
        }
        write_json(index_of(path), METADATA | {"arrays": index})


def _joined(slices):
    """Return an array, joined from all its slices."""
    ends = [np.add(start, x.shape) for start, x in slices]
    whole = np.empty(np.max(ends, axis=0).astype(int), slices[0][1].dtype)
    for (start, x), end in zip(slices, ends, strict=True):
        whole[tuple(map(slice, start, end))] = x
    return whole


def assign_variables(values: Values, variables: Mapping[str, keras.Variable], owner: str) -> None:
    """Assign values to variables, after a check of all names and shapes.

    Each process reads the slices that it holds.

    Args:
        values: The values.
        variables: The variables by name.
        owner: What the variables belong to, for the error message.

    Raises:
        ValueError: If a name or a shape differs.
    """
    check_variables(values, variables, owner)
    for name, variable in variables.items():
        assign_slices(variable, partial(values.read, name))


def check_variables(values: Values, variables: Mapping[str, keras.Variable], owner: str) -> None:
    """Raise ValueError if the names or shapes of values and variables differ."""
    check_same({k: tuple(v.shape) for k, v in variables.items()}, values.shapes, owner)
