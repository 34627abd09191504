"""Checkpoints in the layout of Hugging Face: a folder with config.json and weights, in and out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors import SafetensorError, safe_open

from keras_transformer.checkpoints.families import FAMILIES, Family
from keras_transformer.checkpoints.weights import save_weights, weights_of
from keras_transformer.files import read_json, write_json

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"


class Checkpoint:
    """The tensors of a folder by name, each read when it is asked for.

    They lie in `model.safetensors`, in the shards that `model.safetensors.index.json` lists, or in
    `pytorch_model.bin`, which PyTorch reads without running anything in it.

    Args:
        folder: with one of these.

    Raises:
        FileNotFoundError: if there is none, or a shard is missing.
        ValueError: if a file is broken, or a shard lacks what the index says is in it.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        self._readers: dict[str, Callable[[], np.ndarray]] = {}
        if (self.folder / WEIGHTS).is_file():
            self._open(self.folder / WEIGHTS)
        elif (self.folder / INDEX).is_file():
            self._open_shards()
        elif (self.folder / PICKLED).is_file():
            self._open_pickled(self.folder / PICKLED)
        else:
            raise FileNotFoundError(
                f"{self.folder} holds no weights: there is no {WEIGHTS}, {INDEX} or {PICKLED}"
            )

    def names(self) -> set[str]:
        """Of all tensors."""
        return set(self._readers)

    def read(self, name: str) -> np.ndarray:
        """One tensor; 16-bit floats come as float32, which holds them exactly."""
        return self._readers[name]()

    def _open(self, path):
        try:
            file = safe_open(path, framework="numpy")
            names = list(file.keys())
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path} is no whole safetensors file: {error}") from error
        for name in names:
            self._readers[name] = lambda file=file, name=name: _as_float32(file.get_tensor(name))
        return set(names)

    def _open_shards(self):
        index = read_json(self.folder / INDEX)
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise ValueError(f"{self.folder / INDEX} is no index: it has no weight_map")
        for shard in sorted(set(places.values())):
            path = self.folder / shard
            if Path(shard).name != shard or not path.is_file():
                raise FileNotFoundError(f"{self.folder} is not whole: its shard {shard} is missing")
            listed = {name for name, place in places.items() if place == shard}
            if missing := sorted(listed - self._open(path)):
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
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except Exception as error:  # a broken or a hostile file raises all sorts
            raise ValueError(f"{path} cannot be read: {error}") from error
        for name, tensor in tensors.items():
            self._readers[name] = lambda tensor=tensor: tensor.float().numpy()


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
    checkpoint = Checkpoint(folder)
    try:
        config = family.config(theirs, checkpoint.names())
    except KeyError as error:
        raise ValueError(f"{folder / CONFIG} lacks {error.args[0]!r}") from error
    model = family.model(config, dtype=dtype)
    _assign(model, family, config, checkpoint)
    return model


def _assign(model, family, config, checkpoint):
    names, read = _canonical(family, config, checkpoint)
    rules = {rule.ours: rule for rule in family.rules(config)}
    needed = {name for rule in rules.values() for name in rule.theirs}
    where = checkpoint.folder
    if missing := sorted(needed - names):
        raise ValueError(f"the weights in {where} lack {_some(missing)}")
    if unknown := sorted(names - needed):
        raise ValueError(f"the weights in {where} have what no rule takes: {_some(unknown)}")
    for weight in model.weights:
        rule = rules[weight.path]
        value = rule.take(read)
        if value.shape != tuple(weight.shape):
            raise ValueError(
                f"{' and '.join(rule.theirs)} in {where} must make {tuple(weight.shape)}, the "
                f"shape of {weight.path}, got {value.shape}"
            )
        weight.assign(value)


def _canonical(family, config, checkpoint):
    """Names without aliases and computed tables, and a function that reads by such a name."""
    needed = {name for rule in family.rules(config) for name in rule.theirs}
    names, other = checkpoint.names(), {}
    for alias, holders in family.aliases.items():
        holder = next((name for name in holders if name in needed), None)
        if alias not in names or alias in needed or holder is None:
            continue
        if holder not in names:
            other[holder] = alias
        elif not np.array_equal(checkpoint.read(alias), checkpoint.read(holder)):
            raise ValueError(
                f"{alias} and {holder} in {checkpoint.folder} must be equal: they are one weight"
            )
        names.discard(alias)
    names |= set(other)
    names = {name for name in names if name in needed or not name.endswith(family.computed or "/")}
    return names, lambda name: checkpoint.read(other.get(name, name))


def write_model(folder: str | os.PathLike, model: keras.Model, kind: str | None = None) -> None:
    """Writes `config.json` and `model.safetensors`, as `transformers` reads them.

    Args:
        folder: made if it is missing.
        model: of one of our families.
        kind: its `model_type`; None: the one whose config is the model's.

    Raises:
        ValueError: if no family has such a model; says what stands in the way.
    """
    config = model.config
    kind = kind or kind_of(config)
    family = FAMILIES[kind]
    ours = weights_of(model)
    tensors: dict[str, np.ndarray] = {}
    for rule in family.rules(config):
        tensors |= rule.give(ours[rule.ours])
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / WEIGHTS, tensors)
    write_json(folder / CONFIG, {**family.config_file(config), "dtype": "float32"})


def kind_of(config: Any) -> str:
    """The `model_type` whose checkpoints make just such a config.

    Raises:
        ValueError: if there is none.
    """
    for kind, family in FAMILIES.items():
        rules = family.rules(config) if isinstance(config, family.model.config_class) else None
        if rules is None:
            continue
        names = {name for rule in rules for name in rule.theirs}
        if family.config(family.config_file(config), names) == config:
            return kind
    raise ValueError(f"no Hugging Face family has a model of {config}")


def _some(names, limit=5):
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
