"""Adapters of a loaded base, switched in place; merging of an adapter and its base."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.config import require
from keras_transformer.hub import peft
from keras_transformer.models.configured import ConfiguredModel
from keras_transformer.saved.contents import ADAPTER, CONFIG, MODEL, read_config
from keras_transformer.saved.model_files import config_of, read_weights
from keras_transformer.system.files import check_free, replacing, write_json
from keras_transformer.weights.adapters import Adapter

# Fields of a config that change no result of a trained model.
_ONLY_TRAINING = ("dropout", "head_dropout")


class Adapters:
    """Adapters of one loaded model, at most one of which is in use at a time.

    ```python
    translator = Translator.load("saved_models/base")
    adapters = Adapters(translator.model)
    adapters.load("saved_models/law/adapter", "law")
    adapters.load("saved_models/sport/adapter", "sport")
    adapters.use("law")
    translator.translate(texts)
    with adapters.using("sport"):
        translator.translate(texts)
    adapters.use(None)  # the base again, exactly
    ```

    A switch assigns the changed weights. So nothing is compiled again, and calls of the model take
    as long as without an adapter. The base's values of these weights are kept in main memory.

    All threads share the model. Inside `using`, other threads that call `load` or `use` or enter
    `using` wait. A thread that calls the model outside of `using` computes with the adapter that is
    in use, and during a switch with a mixture of weights.

    Args:
        model: The base, such as the `model` of a `Translator` or a `CausalLM`, with float weights.

    Attributes:
        active: Name of the adapter in use; None: the base alone is in use.

    Raises:
        ValueError: If the weights are quantized.
    """

    def __init__(self, model: ConfiguredModel):
        accepted = "None: load the base in another precision"
        mode = model.quantization or model.saved_quantization
        require(not mode, "the quantization of the base", mode, accepted)
        self.active: str | None = None
        self._model = model
        self._adapters: dict[str | None, Adapter] = {}  # by name
        self._kept: dict[str, np.ndarray] = {}  # the base's values of weights that are changed
        self._lock = threading.RLock()

    @property
    def names(self) -> list[str]:
        """Names of the loaded adapters."""
        return [name for name in self._adapters if name is not None]

    def load(self, folder: str | os.PathLike, name: str | None = None) -> str:
        """Load an adapter without using it; return its name.

        Args:
            folder: Folder of the adapter; or one that PEFT wrote, for a base that was imported
                from the checkpoint that PEFT trained it on. PEFT's files do not identify their
                base, so any base of the same size is accepted.
            name: Name for `use`; None: that of the folder. An adapter of this name is replaced.

        Raises:
            ValueError: If the folder is no adapter, it was trained on another base, its config
                differs from the base's (as with a new head), or an adapter of this name is in use.
        """
        folder = Path(folder)
        name = folder.resolve().name if name is None else name
        is_peft = (folder / peft.CONFIG).is_file()
        config = None if is_peft else _adapter_config(folder)
        adapter = (
            Adapter.read(folder, config["adapter"])
            if config
            else peft.read_peft(folder, self._model)
        )
        with self._lock:
            require(name != self.active, "name", name, "another one: this adapter is in use")
            weights = {weight.path: weight for weight in self._model.weights}
            base: dict[str, Any] = weights | self._kept
            try:
                if config:
                    _check_config(self._model, config)
                adapter.check(base, {path: tuple(x.shape) for path, x in weights.items()})
            except (TypeError, ValueError) as error:
                raise ValueError(f"{folder} is not an adapter of this base: {error}") from error
            for path in adapter.changed:
                if path not in self._kept:
                    self._kept[path] = np.array(ops.convert_to_numpy(weights[path]))
            self._adapters[name] = adapter
        return name

    def use(self, name: str | None) -> None:
        """Switch to a loaded adapter; None: to the base alone.

        Raises:
            ValueError: If no adapter of this name is loaded.
        """
        with self._lock:
            accepted = f"None or one of {self.names}"
            require(name is None or name in self._adapters, "name", name, accepted)
            if name == self.active:
                return
            before, after = self._adapters.get(self.active), self._adapters.get(name)
            changed = {path for x in (before, after) if x is not None for path in x.changed}
            for weight in self._model.weights:
                if weight.path in changed:
                    path = weight.path
                    value = self._kept[path] if after is None else after.value(path, self._kept)
                    weight.assign(value)
            self.active = name

    @contextlib.contextmanager
    def using(self, name: str | None) -> Iterator[None]:
        """Use an adapter (None: the base) in the context, then return to what was in use before.

        Other threads that call `load`, `use` or `using` wait until the end of the context.
        """
        with self._lock:
            before = self.active
            self.use(name)
            try:
                yield
            finally:
                self.use(before)


def _adapter_config(folder: str | os.PathLike) -> dict[str, Any]:
    config = read_config(folder, "adapter")
    accepted = f"that of an adapter, with {ADAPTER}; use `load` of its class for a whole model"
    require(config.get("adapter") is not None, "folder", str(folder), accepted)
    return config


def _check_config(model: Any, config: Mapping[str, Any]) -> None:
    """Raise ValueError if an adapter's config differs from its base's, except in dropout."""
    base_values, adapter_values = model.config.to_dict(), config_of(model, config).to_dict()
    for field, value in adapter_values.items():
        if field not in _ONLY_TRAINING:
            accepted = f"{base_values[field]!r}, as in the base"
            require(value == base_values[field], f"{field} of its model", value, accepted)


def merge(folder: str | os.PathLike, out: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Write an adapter and its base as one saved model, with the adapter's other files.

    Args:
        folder: Folder of the adapter.
        out: Folder to write.
        overwrite: Whether to replace `out`, if it exists.

    Raises:
        FileExistsError: If `out` exists, and `overwrite` is False.
        ValueError: If the folder is no adapter, or its base is missing or not the one that it was
            trained on.
    """
    folder, out = Path(folder), Path(out)
    check_free(out, overwrite)
    config = _adapter_config(folder)
    model: keras.Model = read_weights(folder, config)
    with replacing(out) as room:
        shutil.copytree(folder, room, ignore=shutil.ignore_patterns(ADAPTER, ".*"))
        model.save(room / MODEL)
        write_json(room / CONFIG, {x: y for x, y in config.items() if x != "adapter"})
