"""Reader of models that CTranslate2 has converted: BART and its relatives, T5 and Whisper."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.ctranslate2_configs import (
    BIAS,
    OUTPUT,
    PAD,
    POSITIONS,
    RELATIVE,
    SOURCE,
    TARGET,
    config_of,
    kind_of,
    starts_from_zero,
)
from keras_transformer.hub.ctranslate2_file import ConvertedFile
from keras_transformer.hub.ctranslate2_names import FIELDS, NUMBERS, check_known, place_of
from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.tensors import check_finite
from keras_transformer.system.files import read_json
from keras_transformer.weights.sizes import sized_by

CONFIG, MODEL = "config.json", "model.bin"
REVISIONS = {"TransformerSpec": 7, "WhisperSpec": 3}  # since CTranslate2 3.0
NEVER = -1e4  # bias of a piece that is never generated, in the range of float16
_SIDES = {SOURCE: "source", TARGET: "target", OUTPUT: "target", BIAS: "target"}
# Variables that need not be read as weights: repeated tables, positions that are computed, scales.
_SPARE = rf"{SOURCE}|{TARGET}|{OUTPUT}|.*/{POSITIONS}|.*/{RELATIVE}|.*/weight_scale"


def is_converted(folder: str | os.PathLike) -> bool:
    """Return whether a folder holds a model that CTranslate2 has converted."""
    config = Path(folder, CONFIG)
    if not (Path(folder, MODEL).is_file() and config.is_file()):
        return False
    facts = read_json(config)
    return isinstance(facts, dict) and "model_type" not in facts


@dataclass(frozen=True)
class Converted:
    """A model in CTranslate2's format.

    Args:
        folder: Folder with `model.bin`, `config.json` and vocabularies.
        file: The variables in `model.bin`.
        facts: The content of `config.json`.
        vocabularies: The pieces of "source" and "target" in the order of their ids; both are the
            same in a Whisper. If one side of a BART or a relative lacks padding, both get unused
            pieces up to one size, and padding at the end.
    """

    folder: Path
    file: ConvertedFile
    facts: Mapping[str, Any]
    vocabularies: Mapping[str, list[str]]

    @classmethod
    def read(cls, folder: str | os.PathLike) -> Converted:
        """Open a folder, without reading its weights.

        Raises:
            FileNotFoundError: If a vocabulary is missing.
            ValueError: If a file is broken, or the model of a kind that is not supported.
        """
        folder = Path(folder)
        file, facts = ConvertedFile(folder / MODEL), read_json(folder / CONFIG)
        what = f"the specification in {file.path}"
        require(file.spec in REVISIONS, what, file.spec, f"one of {sorted(REVISIONS)}")
        least = REVISIONS[file.spec]
        accepted = f"{least}; convert the model again"
        require(file.revision == least, f"the revision of {what}", file.revision, accepted)
        check_known(facts, FIELDS, folder / CONFIG)
        check_known(file.numbers(), NUMBERS, file.path)
        kind = kind_of(file)
        source, target = _vocabularies(folder, kind == "whisper")
        sides = ("source", source, SOURCE), ("target", target, TARGET)
        for side, pieces, name in sides[kind == "whisper" :]:
            size, what = file.shape(name)[0], f"the size of the {side} vocabulary in {folder}"
            require(len(pieces) == size, what, len(pieces), f"{size}, as in {MODEL}")
        if kind == "bart" and not (PAD in source and PAD in target):
            size = max(len(source), len(target))
            unused = [f"<unused_{i}>" for i in range(size)]
            source, target = (x + unused[len(x) :] + [PAD] for x in (source, target))
        return cls(folder, file, facts, dict(source=source, target=target))

    @property
    def kind(self) -> str:
        """The family whose map has the weights, see `kind_of`."""
        return kind_of(self.file)

    @cached_property
    def config(self) -> Any:
        """Our config of the model.

        Raises:
            ValueError: If the model has an option that is not supported; names it.
        """
        try:
            return config_of(self.file, self.facts, self.vocabularies)
        except ValueError as error:
            raise ValueError(f"{self.folder} cannot be read: {error}") from error

    def model(self, dtype: Any = None) -> keras.Model:
        """Return the model with its weights.

        Args:
            dtype: Keras dtype policy, such as "bfloat16". None: the global one.

        Raises:
            ValueError: If a weight is missing, of another shape, NaN or infinite, or the file has
                variables that the model lacks; names them.
        """
        family, config, places = FAMILIES[self.kind], self.config, self.file.places
        rules = {rule.ours: rule for rule in family.rules(config)}
        used = {BIAS} if self.kind == "t5" else set()  # the config checks it

        def read(name):
            place, part, parts = place_of(name, self.kind)
            used.add(place)
            return (
                self._with_all_pieces(place)
                if place in _SIDES
                else self.file.read(place, part, parts)
            )

        with sized_by(config, len(places), sum(math.prod(x.shape) for x in places.values())):
            model = family.model(config, dtype=dtype)
        for weight in model.weights:
            value = rules[weight.path].take(read, tuple(weight.shape))
            weight.assign(check_finite(value, weight.path, self.file.path))
        others = [x for x in places if x not in used and not re.fullmatch(_SPARE, x)]
        others = sorted(name for name in others if places[name].shape != ())
        if others:
            names = ", ".join(others[:5])
            raise ValueError(f"{self.file.path} has variables that the model lacks: {names}")
        return model

    def _with_all_pieces(self, place):
        """Return a table or a bias with a row for each piece, also for pieces that were added.

        Added rows are zeros in a table and `NEVER` in a bias. So is the row of padding in a Marian,
        whose decoder begins with zeros.
        """
        size, is_bias = len(self.vocabularies[_SIDES[place]]), place == BIAS
        is_absent = is_bias and BIAS not in self.file.places
        values = np.zeros(size, "float32") if is_absent else self.file.read(place)
        never = NEVER if is_bias else 0
        rows = self.file.shape(TARGET)[0] if is_absent else len(values)
        whole = np.full((size, *values.shape[1:]), never, "float32")
        whole[:rows] = values[:rows]
        if starts_from_zero(self.file):
            whole[self.config.pad_id] = never
        return np.maximum(whole, NEVER)[None] if is_bias else whole


def _vocabularies(folder, is_whisper):
    """Return the pieces of source and target, which may share one file."""
    if is_whisper:
        return (_pieces(folder, "vocabulary"),) * 2
    if _paths(folder, "shared_vocabulary"):
        return (_pieces(folder, "shared_vocabulary"),) * 2
    return _pieces(folder, "source_vocabulary"), _pieces(folder, "target_vocabulary")


def _paths(folder, name):
    paths = (folder / f"{name}.{end}" for end in ("json", "txt"))
    return [path for path in paths if path.is_file()]


def _pieces(folder, name):
    """Read a vocabulary: a list in JSON, or text with one piece per line.

    Raises:
        FileNotFoundError: If it is missing.
        ValueError: If it cannot be read.
    """
    if not (paths := _paths(folder, name)):
        raise FileNotFoundError(f"{folder} has no {name}.json or {name}.txt")
    if paths[0].suffix == ".json":
        pieces = read_json(paths[0])
        is_list = isinstance(pieces, list) and all(isinstance(x, str) for x in pieces)
        require(is_list, f"the content of {paths[0]}", pieces, "a list of pieces")
        return pieces
    try:
        return paths[0].read_bytes().decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{paths[0]} is not UTF-8: {error}") from error
