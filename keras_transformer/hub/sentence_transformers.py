"""Folders of sentence-transformers: their modules besides the encoder, and their settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.hub.sentence_fields import (
    ACTIVATIONS,
    DENSE_WEIGHTS,
    LEGACY_POOLINGS,
    OF_DENSE,
    OF_DROPOUT,
    OF_LAYER_NORM,
    OF_MODULE,
    OF_NORMALIZE,
    OF_POOLING,
    OF_SCORER,
    OF_SETTINGS,
    OF_TRANSFORMER,
)
from keras_transformer.hub.tensors import Checkpoint
from keras_transformer.models.sentence import POOLINGS, SIMILARITIES, Embedding, Step
from keras_transformer.system.files import read_json
from keras_transformer.system.foreign_fields import FieldTable

MODULES = "modules.json"  # marks a folder of sentence-transformers
SETTINGS = "config_sentence_transformers.json"
TRANSFORMER = "sentence_bert_config.json"
TOKENIZER = "tokenizer_config.json"
# Older versions named this file after the kind of encoder.
TRANSFORMERS = (TRANSFORMER, *(
    f"sentence_{name}_config.json"
    for name in ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
))  # fmt: skip
NAMES = ("Transformer", "Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")


def settings_of(folder: str | os.PathLike) -> dict[str, Any]:
    """Return the checked fields of `config_sentence_transformers.json`; {} without this file."""
    return OF_SETTINGS.read_from(Path(folder, SETTINGS))


def is_scorer(folder: str | os.PathLike) -> bool:
    """Return whether a folder of sentence-transformers is a cross-encoder."""
    return settings_of(folder).get("model_type") == "CrossEncoder"


def read_sentence_model(
    folder: str | os.PathLike, d_model: int
) -> tuple[tuple[str, ...], Embedding, bool] | None:
    """Return pooling and later steps of an embedder of sentence-transformers.

    Args:
        folder: The folder.
        d_model: Width of its encoder.

    Returns:
        The modes of the pooling, an `Embedding` with all later steps and the settings, and whether
        texts are lower-cased. None for a cross-encoder, or without `modules.json`.

    Raises:
        FileNotFoundError: If the config of the pooling or the weights of a later step are missing.
        ValueError: If a file is broken, a module is not supported, or a field of one has a value
            that is not supported; names it.
    """
    folder = Path(folder)
    modules = _modules(folder)
    if modules is None or is_scorer(folder):
        return None
    kinds = [kind for kind, _ in modules]
    has_kinds = kinds[:2] == ["Transformer", "Pooling"] and set(kinds[2:]) <= set(NAMES[2:])
    accepted = "Transformer, Pooling and then any of " + ", ".join(NAMES[2:])
    require(has_kinds, f"the modules in {folder / MODULES}", kinds, accepted)
    length, lowercase = read_limits(folder, OF_TRANSFORMER, modules[0][1])
    modes, include_prompt = _pooling(modules[1][1] / "config.json", d_model)
    steps, width = [], d_model * len(modes)
    for kind, place in modules[2:]:
        if kind != "Dropout":
            steps.append(_step(kind, place, width))
            width = steps[-1].width(width)
        else:
            OF_DROPOUT.read_from(place / "config.json")
    settings = settings_of(folder)
    similarity = settings.get("similarity_fn_name") or "cosine"
    known = f"one of {SIMILARITIES} or null"
    path = folder / SETTINGS
    require(similarity in SIMILARITIES, f"similarity_fn_name in {path}", similarity, known)
    dimension = settings.get("truncate_dim")
    is_length = dimension is None or (type(dimension) is int and dimension > 0)
    accepted = "a whole number of at least 1, or null"
    require(is_length, f"truncate_dim in {path}", dimension, accepted)
    try:
        embedding = Embedding(
            steps=tuple(steps),
            prompts={name: x or "" for name, x in (settings.get("prompts") or {}).items()},
            default_prompt_name=settings.get("default_prompt_name"),
            include_prompt=include_prompt,
            max_length=length,
            similarity=similarity,
            dimension=dimension,
        )
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{folder / SETTINGS} does not fit: {error}") from error
    return modes, embedding, lowercase


def read_scorer(folder: str | os.PathLike) -> tuple[int | None, bool]:
    """Return the maximum length of a cross-encoder and whether it lower-cases texts.

    See `read_limits`.

    Raises:
        ValueError: If a file is broken, there are other modules than a Transformer, a prompt is the
            default, or a field has a value that is not supported; names it.
    """
    folder, place = Path(folder), None
    if modules := _modules(folder):
        kinds = [kind for kind, _ in modules]
        only = "the Transformer of a cross-encoder"
        require(kinds == ["Transformer"], f"the modules in {folder / MODULES}", kinds, only)
        place = modules[0][1]
        name, prompts = (settings_of(folder).get(x) for x in ("default_prompt_name", "prompts"))
        prompt = (prompts or {}).get(name)
        where = f"the prompt default_prompt_name in {folder / SETTINGS}"
        require(not prompt, where, prompt, "empty: a scorer of pairs has no prompts")
    return read_limits(folder, OF_SCORER, place)


def with_activation(folder: str | os.PathLike, theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `config.json` with the activation of a cross-encoder added.

    It is read from `config_sentence_transformers.json`, if the folder has this file and
    `modules.json`. Otherwise no field is added.
    """
    name = settings_of(folder).get("activation_fn") if Path(folder, MODULES).is_file() else None
    return {**theirs} | ({"sentence_transformers": {"activation_fn": name}} if name else {})


def read_limits(
    folder: Path, table: FieldTable, place: Path | None = None
) -> tuple[int | None, bool]:
    """Return the maximum tokens of a text, or None for no limit, and whether texts are lower-cased.

    The limit is `max_seq_length`, or else the `model_max_length` of the tokenizer.

    Args:
        folder: Folder of the model.
        table: Table of the fields of its `sentence_bert_config.json`.
        place: Folder of its first module; None: the folder of the model.

    Raises:
        ValueError: If a file is broken, or a field has a value that is not supported; names it.
    """
    places = [(place or folder) / name for name in TRANSFORMERS]
    path = next((path for path in places if path.is_file()), places[0])
    facts = table.read_from(path)
    options = folder / TOKENIZER
    options = read_json(options) if options.is_file() else {}
    length = facts.get("max_seq_length")
    if length is None:
        length = options.get("model_max_length") if isinstance(options, dict) else None
        # In a tokenizer without a limit it is 10 ** 30.
        length = int(length) if isinstance(length, int | float) and length < 1e9 else None
    is_length = length is None or (type(length) is int and length > 0)
    require(is_length, f"max_seq_length in {path}", length, "a whole number of at least 1, or null")
    lowercase = facts.get("do_lower_case", False)
    flags = (True, False, None)
    require(lowercase in flags, f"do_lower_case in {path}", lowercase, "true or false")
    return length, bool(lowercase)


def _modules(folder):
    """Return the name and the folder of each module; None without `modules.json`."""
    path = folder / MODULES
    if not path.is_file():
        return None
    modules = read_json(path)
    plain = isinstance(modules, list) and all(isinstance(x, dict) for x in modules)
    require(plain, path.name, modules, "a list of objects")
    folders = []
    for module in modules:
        OF_MODULE.check(module, path)
        kind, place = str(module.get("type")), module.get("path", "")
        package, _, name = kind.rpartition(".")
        is_known = package.split(".")[0] == "sentence_transformers" and name in NAMES
        require(is_known, f"type of a module in {path}", kind, f"one of {NAMES}")
        inside = isinstance(place, str) and ".." not in Path(place).parts
        inside = inside and not Path(place).is_absolute()
        require(inside, f"path of a module in {path}", place, "a folder inside the model's")
        folders.append((name, folder / place))
    return folders


def _pooling(path, d_model):
    """Return the modes of a pooling, and whether it includes the tokens of prompts."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing")
    facts = OF_POOLING.read_from(path)
    modes = facts.get("pooling_mode")
    if modes is None:
        modes = [mode for name, mode in LEGACY_POOLINGS.items() if facts.get(name)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    are_poolings = isinstance(modes, list) and len(modes) > 0 and all(x in POOLINGS for x in modes)
    require(are_poolings, f"the pooling in {path}", modes, f"some of {POOLINGS}")
    for name in ("embedding_dimension", "word_embedding_dimension"):
        width = facts.get(name, d_model)
        require(width == d_model, f"{name} in {path}", width, f"{d_model}, the encoder's width")
    included = facts.get("include_prompt", True)
    require(isinstance(included, bool), f"include_prompt in {path}", included, "true or false")
    return tuple(modes), included


def _step(kind, place, width):
    """Return the step of a module, checked against the width of its input vectors."""
    path = place / "config.json"
    if kind == "Normalize":
        OF_NORMALIZE.read_from(path)
        return Step("normalize")
    if kind == "LayerNorm":
        facts = OF_LAYER_NORM.read_from(path)
        _require_width(facts, "dimension", width, path)
        tensors = _tensors(place, {"norm.weight": (width,), "norm.bias": (width,)})
        return Step(
            "layer_norm", weights=dict(gamma=tensors["norm.weight"], beta=tensors["norm.bias"])
        )
    facts = OF_DENSE.read_from(path)
    _require_width(facts, "in_features", width, path)
    usual: dict[str, Any] = dict(out_features=None, bias=True, use_residual=False)
    out, bias, residual = ({**usual, **facts}[name] for name in usual)
    require(type(out) is int and out > 0, f"out_features in {path}", out, "a whole number above 0")
    name = facts.get("activation_function", "torch.nn.modules.activation.Tanh")
    require(name in ACTIVATIONS, f"activation_function in {path}", name, f"in {[*ACTIVATIONS]}")
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (out, width)}
    shapes |= {"linear.bias": (out,)} if bias else {}
    if residual and out != width:
        shapes["residual.weight"] = (out, width)
    weights = {DENSE_WEIGHTS[x]: tensor.T for x, tensor in _tensors(place, shapes).items()}
    return Step("dense", ACTIVATIONS[name], bool(residual), weights)


def _require_width(facts: Mapping[str, Any], name: str, width: int, path: Path) -> None:
    value = facts.get(name)
    require(value == width, f"{name} in {path}", value, f"{width}, the width of what comes before")


def _tensors(folder, shapes):
    """Return the tensors of a module after checking their names and shapes."""
    checkpoint = Checkpoint(folder)
    names = checkpoint.names()
    require(names == set(shapes), f"the tensors in {folder}", sorted(names), f"{sorted(shapes)}")
    arrays = {name: checkpoint.read(name) for name in shapes}
    for name, shape in shapes.items():
        require(arrays[name].shape == shape, f"{name} in {folder}", arrays[name].shape, f"{shape}")
    return arrays
