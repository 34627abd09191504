"""Checkpoints in the layout of Hugging Face: a folder with config.json and weights, in and out."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors import SafetensorError, safe_open

from keras_transformer.checkpoints.families import FAMILIES, Family
from keras_transformer.checkpoints.weights import save_weights, weights_of
from keras_transformer.files import read_json, write_json
from keras_transformer.layers.base import unfilled

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
PICKLED_INDEX = "pytorch_model.bin.index.json"


class Checkpoint:
    """The tensors of a folder by name, each read when it is asked for.

    They lie in `model.safetensors`, in the shards that `model.safetensors.index.json` lists, or in
    `pytorch_model.bin` or its shards, which PyTorch reads without running anything in them.

    Args:
        folder: with one of these.
        prefix: put before all names, if none has it.
        endings: pairs of an end of names and what it is read as.

    Raises:
        FileNotFoundError: if there is none, or a shard is missing.
        ValueError: if a file is broken, or a shard lacks what the index says is in it.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        prefix: str = "",
        endings: Iterable[tuple[str, str]] = (),
    ):
        self.folder = Path(folder)
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        if (self.folder / WEIGHTS).is_file():
            self._open(self.folder / WEIGHTS)
        elif (self.folder / INDEX).is_file():
            self._open_shards(INDEX, self._open)
        elif (self.folder / PICKLED).is_file():
            self._open_pickled(self.folder / PICKLED)
        elif (self.folder / PICKLED_INDEX).is_file():
            self._open_shards(PICKLED_INDEX, self._open_pickled)
        else:
            raise FileNotFoundError(
                f"{self.folder} holds no weights: there is no {WEIGHTS}, {INDEX} or {PICKLED}"
            )
        if not any(name.startswith(prefix) for name in self._readers):
            self._readers = {prefix + name: read for name, read in self._readers.items()}
        for old, new in endings:
            for name in [name for name in self._readers if name.endswith(old)]:
                self._readers[name.removesuffix(old) + new] = self._readers.pop(name)

    def names(self) -> set[str]:
        """Of all tensors."""
        return set(self._readers)

    def read(self, name: str) -> np.ndarray:
        """One tensor; 16-bit floats come as float32, which holds them exactly."""
        return self._readers[name]()

    def _open(self, path):
        try:
            with safe_open(path, framework="numpy") as file:
                names = list(file.keys())
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is no whole safetensors file: {error}") from error

        def read(name):
            # Opened anew for each: pages of an open file that were read stay in memory.
            with safe_open(path, framework="numpy") as file:
                return _as_float32(file.get_tensor(name))

        for name in names:
            self._readers[name] = functools.partial(read, name)
        return set(names)

    def _open_shards(self, name, open_one):
        index = read_json(self.folder / name)
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.folder / name} is no index: it has no weight_map")
        for shard in sorted(set(places.values())):
            path = self.folder / shard
            if Path(shard).name != shard or not path.is_file():
                raise FileNotFoundError(f"{self.folder} is not whole: its shard {shard} is missing")
            listed = {name for name, place in places.items() if place == shard}
            if missing := sorted(listed - open_one(path)):
                raise ValueError(f"{path} lacks {missing[0]}, which the index says is in it")

    def _open_pickled(self, path):
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"{path} is a pickle, which only PyTorch reads safely: install PyTorch, or turn "
                "the checkpoint into safetensors where it is"
            ) from error
        try:
            # Of PyTorch before 1.6 the file is no archive, and cannot be mapped.
            mapped = zipfile.is_zipfile(path)
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
        except Exception as error:  # a broken or a hostile file raises all sorts
            raise ValueError(f"{path} cannot be read: {error}") from error
        for name, tensor in tensors.items():
            self._readers[name] = lambda tensor=tensor: tensor.float().numpy()
        return set(tensors)


def _as_float32(array: np.ndarray) -> np.ndarray:
    return array if array.dtype == np.float32 else array.astype(np.float32)


def family_of(config: Mapping[str, Any], where: str | os.PathLike) -> Family:
    """The family that a `config.json` belongs to.

    Raises:
        ValueError: if it is none of ours; lists them.
    """
    kind = config.get("model_type")
    if kind not in FAMILIES:
        raise ValueError(f"model_type in {where} must be one of {sorted(FAMILIES)}, got {kind!r}")
    return FAMILIES[kind]


def read_model(folder: str | os.PathLike, dtype: Any = None) -> keras.Model:
    """The model of a folder in Hugging Face layout.

    Args:
        folder: with `config.json` and the weights.
        dtype: Keras dtype policy, such as "bfloat16"; None takes the global one.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the family is unknown, a file is broken, or a weight is missing,
            unexpected or of another shape; names it.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} is no checkpoint: it has no {CONFIG}")
    theirs = read_json(folder / CONFIG)
    if not isinstance(theirs, dict):
        raise ValueError(f"{folder / CONFIG} must hold an object, got {type(theirs).__name__}")
    family = family_of(theirs, folder / CONFIG)
    checkpoint = Checkpoint(folder, family.prefix, family.endings)
    names = _without_copies(family, checkpoint)
    try:
        config = family.config(theirs, names)
    except KeyError as error:
        raise ValueError(f"{folder / CONFIG} lacks {error.args[0]!r}") from error
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG} does not fit: {error}") from error
    with unfilled():
        model = family.model(config, dtype=dtype)
    _assign(model, family.rules(config), *_renamed(family, config, checkpoint, names))
    return model


def _assign(model, rules, names, read, where):
    needed = {name for rule in rules for name in rule.names}
    if missing := sorted(needed - names):
        raise ValueError(f"the weights in {where} lack {_some(missing)}")
    if unknown := sorted(names - needed):
        raise ValueError(f"the weights in {where} have what no rule takes: {_some(unknown)}")
    by_path = {rule.ours: rule for rule in rules}
    for weight in model.weights:
        rule = by_path[weight.path]
        value = rule.take(read)
        if value.shape != tuple(weight.shape):
            raise ValueError(
                f"{' and '.join(rule.names)} in {where} must make {tuple(weight.shape)}, the "
                f"shape of {weight.path}, got {value.shape}"
            )
        weight.assign(value)


def _without_copies(family, checkpoint):
    """The names, without those of what another name that is there holds as well."""
    names = checkpoint.names()
    for alias, holders in family.aliases.items():
        holder = next((name for name in holders if name in names), None)
        if holder is None or alias not in names:
            continue
        if np.array_equal(checkpoint.read(alias), checkpoint.read(holder)):
            names.discard(alias)
    return names


def _renamed(family, config, checkpoint, names):
    """The names that rules look for, without what is never used; a reader by them; the folder."""
    needed = {name for rule in family.rules(config) for name in rule.names}
    places = {name: name for name in names}
    for alias, holders in family.aliases.items():
        holder = next((name for name in holders if name in needed), None)
        if alias not in names or alias in needed or holder is None:
            continue
        value = places.setdefault(holder, alias)
        if value != alias and not np.array_equal(checkpoint.read(alias), checkpoint.read(value)):
            raise ValueError(
                f"{alias} and {value} in {checkpoint.folder} must be equal: they are one weight"
            )
        del places[alias]
    unused = {x for x in places if x not in needed and x.endswith(family.unused or "/")}
    return (
        places.keys() - unused,
        lambda name: checkpoint.read(places[name]),
        checkpoint.folder,
    )


def write_model(folder: str | os.PathLike, model: keras.Model, kind: str | None = None) -> None:
    """Writes `config.json` and `model.safetensors`, as `transformers` reads them.

    Args:
        folder: made if it is missing.
        model: of one of our families.
        kind: its `model_type`; None: the first that has such models.

    Raises:
        ValueError: if there is no such family, or it has no such models; says what stands in
            the way.
    """
    write_checkpoint(folder, model.config, weights_of(model), kind)


def write_checkpoint(
    folder: str | os.PathLike,
    config: Any,
    weights: Mapping[str, np.ndarray],
    kind: str | None = None,
) -> None:
    """As `write_model`, of a config and weights by Keras path."""
    if kind is not None and kind not in FAMILIES:
        raise ValueError(f"kind must be one of {sorted(FAMILIES)} or None, got {kind!r}")
    problems = {one: _difference(one, config) for one in ([kind] if kind else FAMILIES)}
    kind = next((one for one, problem in problems.items() if problem is None), None)
    if kind is None:
        reasons = "; ".join(f"{one}: {problem}" for one, problem in problems.items())
        raise ValueError(f"the model cannot be written as a Hugging Face checkpoint. {reasons}")
    tensors: dict[str, np.ndarray] = {}
    for rule in FAMILIES[kind].rules(config):
        tensors |= rule.give(weights[rule.ours])
    if not getattr(
        config, "tie_output", True
    ):  # then `transformers` (5.23) ties none of BART's tables to another
        for alias, (holder, *_) in FAMILIES[kind].aliases.items():
            if alias.startswith("model.") and holder in tensors:
                tensors.setdefault(alias, tensors[holder])
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / WEIGHTS, tensors)
    write_json(folder / CONFIG, _config_file(kind, config) | {"dtype": "float32"})


def _config_file(kind, config):
    return FAMILIES[kind].config_file(config) | {"model_type": kind}


def _difference(kind, config):
    """What such a checkpoint would make other than it is in our config; None if nothing."""
    family = FAMILIES[kind]
    if not isinstance(config, family.model.config_class):
        return f"its models are {family.model.__name__}s"
    names = {name for rule in family.rules(config) for name in rule.names}
    try:
        again = family.config(_config_file(kind, config), names).to_dict()
    except ValueError as error:
        return str(error)
    ours = config.to_dict()
    other = [name for name in ours if name not in family.free and ours[name] != again[name]]
    return f"it has {', '.join(f'{x}={again[x]!r}' for x in other)}" if other else None


def _some(names, limit=5):
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
