"""Read and write checkpoints in Hugging Face's layout: a folder with config.json and weights."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_transformer.config import require
from keras_transformer.hub.families import FAMILIES, VARIANTS, Family
from keras_transformer.hub.families.family import Rule, token_ids
from keras_transformer.hub.generation_config import CONFIG, OF_TOKENS, generation_facts
from keras_transformer.hub.sentence_transformers import with_activation
from keras_transformer.hub.tensors import PLAIN, WEIGHTS, Checkpoint
from keras_transformer.layers.blocks import in_blocks
from keras_transformer.models.quantized import assign_matrices
from keras_transformer.system.extras import missing
from keras_transformer.system.files import read_json, write_json
from keras_transformer.system.memory import return_memory
from keras_transformer.weights.sizes import check_sizes, sized_by
from keras_transformer.weights.weight_files import save_weights, weights_of

SMALL = ["*.json", "*.model", "vocab.txt", "merges.txt"]  # patterns of a config and a tokenizer


def family_of(config: Mapping[str, Any], where: str | os.PathLike) -> Family:
    """Return the family that a `config.json` belongs to.

    Args:
        config: Content of the file.
        where: Its path, for messages.

    Raises:
        ValueError: If the family is not supported; lists those that are.
    """
    kind: Any = config.get("model_type")
    is_known = isinstance(kind, str) and kind in FAMILIES
    require(is_known, f"model_type in {where}", kind, f"one of {sorted(FAMILIES)}")
    names = config.get("architectures")
    first = names[0] if isinstance(names, list) and names else None
    return VARIANTS.get((kind, first), FAMILIES[kind]) if isinstance(first, str) else FAMILIES[kind]


def read_model(
    folder: str | os.PathLike, dtype: Any = None, blocks: str | None = None
) -> keras.Model:
    """Read the model of a folder in Hugging Face's layout.

    Args:
        folder: Folder with `config.json` and the weights. Ids of EOS, of BOS and of the decoder's
            first token in `generation_config.json` take precedence over those in `config.json`,
            as in `transformers`.
        dtype: Keras dtype policy, such as "bfloat16". None: the global one.
        blocks: "q4" or "q8" to keep matrices in blocks of 4 or 8 bits: each is rounded as it is
            read. None: floats.

    Raises:
        FileNotFoundError: If a file is missing.
        ImportError: If the weights are in a `pytorch_model.bin` and PyTorch is missing.
        ValueError: As in `read_config`, or if a file is broken, or a weight is missing,
            unexpected, of another shape, not of floats, NaN or infinite; names it.
    """
    return model_of(*read_config(folder), Path(folder, CONFIG), dtype, blocks)


def model_of(
    theirs: Mapping[str, Any],
    family: Family,
    path: Path,
    dtype: Any = None,
    blocks: str | None = None,
) -> keras.Model:
    """Read the model of a family from the weights beside its settings; see `read_model`.

    Args:
        theirs: The settings, such as a `config.json`.
        family: The family.
        path: File of the settings.
        dtype, blocks: See `read_model`.
    """
    folder = path.parent
    checkpoint = Checkpoint(folder, family.prefix, family.endings, family.part)
    names = _without_copies(family, checkpoint)
    with _naming(path, family.in_their_words):
        config = family.read(theirs, names)
        count, numbers = len(names), checkpoint.size // 2  # each number has two bytes or more
        check_sizes(config, count, numbers)
        rules = family.rules(config)
    names, read = _renamed(family, rules, checkpoint, names)
    _check_names(family, rules, names, folder)
    with (
        _naming(path, family.in_their_words),
        sized_by(config, count, numbers),
        in_blocks(blocks),
    ):
        model = family.model(config, dtype=dtype)
    model.quantization = blocks
    _assign(model, rules, read, path)
    return_memory()
    return model


def read_config(folder: str | os.PathLike) -> tuple[dict[str, Any], Family]:
    """Read and check the `config.json` of a folder; return its fields and its family.

    Token ids in `generation_config.json` replace those in `config.json`, see `read_model`. The
    activation of a cross-encoder is added, see `with_activation`.

    Raises:
        FileNotFoundError: If `config.json` is missing.
        ValueError: If it is broken, the family is not supported, a field is missing or has a
            value that is not accepted, or the weights are quantized; names file and field.
    """
    path = Path(folder, CONFIG)
    if not path.is_file():
        problem = f"it has no {CONFIG}" if Path(folder).is_dir() else "there is no such folder"
        raise FileNotFoundError(f"{folder} is not a checkpoint: {problem}")
    theirs = read_json(path)
    if not isinstance(theirs, dict):
        raise ValueError(f"{path} must hold an object, got {type(theirs).__name__}")
    family = family_of(theirs, path)
    for name in ("quantization_config", "compression_config"):
        if (entry := theirs.get(name)) is not None:
            method = entry.get("quant_method") if isinstance(entry, dict) else entry
            raise ValueError(
                f"{path} has a {name} with the method {method!r:.200}: quantized weights are not "
                f"supported; {PLAIN}"
            )
    theirs = with_activation(folder, _with_token_ids(Path(folder), theirs))
    with _naming(path):
        family.complete(theirs)
    family.table.check(theirs, path)
    return theirs, family


@contextlib.contextmanager
def _naming(path, translate=str):
    """Turn errors of the body into ValueErrors that name a `config.json`.

    `translate` converts their messages, except those of KeyErrors.
    """
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]!r}") from error
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{path} does not fit: {translate(f'{error!s:.1000}')}") from error


def _with_token_ids(folder, theirs):
    """Return the config with the token ids of `generation_config.json`, if it has any."""
    facts, path = generation_facts(folder)
    names = [name for name in OF_TOKENS if facts.get(name) is not None]
    theirs = theirs | {name: facts[name] for name in names}
    try:
        for name in names:
            token_ids(theirs, name)
    except ValueError as error:
        raise ValueError(f"{path} does not fit {CONFIG}: {error}") from error
    return theirs


def _check_names(family, rules, names, where):
    """Raise ValueError if the checkpoint lacks tensors of the rules, or has others."""
    needed = {name for rule in rules for name in rule.names}
    if missing := sorted(needed - names):
        aliases = [name for name in missing if name in family.aliases]
        reason = f"; {aliases[0]} may be missing if tie_word_embeddings is true" if aliases else ""
        raise ValueError(f"the weights in {where} lack {_some(missing)}{reason}")
    if unknown := sorted(names - needed):
        raise ValueError(
            f"the weights in {where} contain tensors that the model lacks: {_some(unknown)}"
        )


def _assign(model, rules, read, settings):
    by_path = {rule.ours: rule for rule in rules}

    def value_of(path, shape):
        try:
            return by_path[path].take(read, shape)
        except ValueError as error:
            where, name = settings.parent, settings.name
            raise ValueError(f"the weights in {where} do not fit {name}: {error}") from error

    assign_matrices(model, value_of)


def _without_copies(family, checkpoint):
    """Return the names of the tensors, without aliases that equal the tensor they repeat."""
    names = checkpoint.names()
    for alias, holders in family.aliases.items():
        holder = next((name for name in holders if name in names), None)
        if holder is None or alias not in names:
            continue
        if np.array_equal(checkpoint.read(alias), checkpoint.read(holder)):
            names.discard(alias)
    return names


def _renamed(family, rules, checkpoint, names):
    """Resolve aliases; return the names of the tensors to use, and a function that reads one.

    Tensors of other heads are left out with a warning.
    """
    needed = {name for rule in rules for name in rule.names}
    names = names | (needed & checkpoint.names())  # also copies, if a rule needs them
    places = {name: name for name in names}
    for alias, holders in family.aliases.items():
        holder = next((name for name in holders if name in needed), None)
        if alias not in names or alias in needed or holder is None:
            continue
        value = places.setdefault(holder, alias)
        if value != alias and not np.array_equal(checkpoint.read(alias), checkpoint.read(value)):
            raise ValueError(
                f"{alias} and {value} in {checkpoint.folder} must be equal: they are tied"
            )
        del places[alias]
    unused = {x for x in places if x not in needed and x.endswith(family.unused or "/")}
    others = {x for x in family.heads if x in places and x not in needed} - unused
    if others:
        warnings.warn(
            f"the weights in {checkpoint.folder} of other heads than the model's are left out: "
            f"{_some(sorted(others))}",
            stacklevel=4,
        )
    return places.keys() - unused - others, lambda name: checkpoint.read(places[name])


def write_model(folder: str | os.PathLike, model: keras.Model, kind: str | None = None) -> None:
    """Write `config.json` and `model.safetensors`, which `transformers` can read.

    Args:
        folder: Output folder, created if it is missing.
        model: A model of a supported family.
        kind: The `model_type` to write. None: the first one that can represent the model.

    Raises:
        ValueError: If `kind` is unknown or cannot represent the model; gives the reason.
    """
    write_checkpoint(folder, model.config, weights_of(model), kind)


def write_checkpoint(
    folder: str | os.PathLike,
    config: Any,
    weights: Mapping[str, np.ndarray],
    kind: str | None = None,
) -> None:
    """Write a checkpoint like `write_model`, from a config and weights by Keras path."""
    fields, tensors = parts_of(config, weights, kind)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(folder / WEIGHTS, tensors)
    write_json(folder / CONFIG, fields | {"dtype": "float32"})


def parts_of(
    config: Any, weights: Mapping[str, np.ndarray], kind: str | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the `config.json` of a checkpoint and its tensors; see `write_checkpoint`."""
    kind = _kind_of(config, kind)
    family = _writer(kind, config)
    tensors: dict[str, np.ndarray] = {}
    for rule in family.rules(config):
        for name, value in rule.give(weights[rule.ours]).items():
            is_next = rule.share[0] > 0
            tensors[name] = np.concatenate([tensors[name], value]) if is_next else value
    if not getattr(config, "tie_output", True):
        for name, repeated in family.untied.items():
            if repeated in tensors:
                tensors.setdefault(name, tensors[repeated])
    return _config_file(kind, config), tensors


def rules_of(config: Any) -> list[Rule]:
    """Return the rules that map our weights of a model to those of its checkpoint.

    Raises:
        ValueError: If no supported checkpoint can hold such a model.
    """
    return _writer(_kind_of(config), config).rules(config)


def _kind_of(config, kind=None):
    """Return the `model_type` to write for a config: `kind`, or the first that fits if it is None.

    Raises:
        ValueError: If `kind`, or each `model_type`, cannot hold the model; gives the reasons.
    """
    require(kind is None or kind in FAMILIES, "kind", kind, f"one of {sorted(FAMILIES)} or None")
    problems = {name: _difference(name, config) for name in ([kind] if kind else FAMILIES)}
    kind = next((name for name, problem in problems.items() if problem is None), None)
    if kind is None:
        reasons = "; ".join(f"{name}: {problem}" for name, problem in problems.items())
        raise ValueError(f"the model cannot be written as a Hugging Face checkpoint. {reasons}")
    return kind


def _writer(kind, config):
    """Return the family or variant of a `model_type` with this class of config; else the family."""
    families = [FAMILIES[kind], *(family for (of, _), family in VARIANTS.items() if of == kind)]
    fitting = (x for x in families if x.model.config_class is type(config))
    return next(fitting, FAMILIES[kind])


def _config_file(kind, config):
    return _writer(kind, config).config_file(config) | {"model_type": kind}


def _difference(kind, config):
    """Describe how our config would differ when read back; None if it would be the same."""
    family = _writer(kind, config)
    if type(config) is not family.model.config_class:
        return f"it stores {family.model.__name__} models"
    names = {name for rule in family.rules(config) for name in rule.names}
    try:
        again = family.read(_config_file(kind, config), names).to_dict()
    except ValueError as error:
        return str(error)
    ours = config.to_dict()
    other = [name for name in ours if name not in family.free and ours[name] != again[name]]
    return (
        f"it would be read back with {', '.join(f'{x}={again[x]!r}' for x in other)}"
        if other
        else None
    )


def _some(names, limit=5):
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def fetched(name: str, patterns: list[str]) -> Path:
    """Download the files of a model on the hub that match `patterns`; return their folder.

    Raises:
        ConnectionError: If the model is not in the cache and the hub cannot be reached.
        FileNotFoundError: If there is no such model.
        ImportError: If `huggingface_hub` is not installed.
        PermissionError: If the model requires a login.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise missing(f"there is no folder {name}, and fetching a model", "pretrained") from error
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
    except errors.GatedRepoError as error:
        raise PermissionError(f"the model {name} requires a login: {error}") from error
    except (errors.HFValidationError, errors.RepositoryNotFoundError) as error:
        raise FileNotFoundError(f"there is no folder {name} and no model of that name") from error
    except (errors.LocalEntryNotFoundError, errors.HfHubHTTPError, OSError) as error:
        raise ConnectionError(
            f"there is no folder {name}; a model of that name is not in the cache of "
            f"huggingface_hub, and the hub cannot be reached: {error}"
        ) from error


def lent(folder: Path, name: str, file: str) -> Path:
    """Return `folder` if it has a file, else the folder or the model on the hub of this name.

    Some checkpoints lack the tokenizer, which is that of another model. Weights are not fetched.
    """
    if (folder / file).is_file():
        return folder
    return Path(name) if Path(name).is_dir() else fetched(name, SMALL)
