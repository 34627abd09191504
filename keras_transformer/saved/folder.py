"""Saved folders: a model with its tokenizer and config, written safely and checked on loading."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_transformer.backend import is_strict, usable_precision
from keras_transformer.config import require
from keras_transformer.layers.blocks import BLOCKS
from keras_transformer.layers.layer import skip_init
from keras_transformer.models import merged, narrowed, widened
from keras_transformer.saved.card import write_card
from keras_transformer.saved.kinds import require_kind
from keras_transformer.saved.model_files import (
    MODEL,
    checkpoint_type,
    facts_of,
    import_command,
    is_hub_name,
    read_weights,
)
from keras_transformer.system.files import (
    complete,
    read_json,
    remove_stale,
    updating,
    write_json,
)
from keras_transformer.system.memory import return_memory
from keras_transformer.system.named_models import is_name, known_models
from keras_transformer.text import Tokenizer, load_tokenizer
from keras_transformer.text.chat_template import FILE as TEMPLATE
from keras_transformer.text.shortlist import FILE as SHORTLIST
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer
from keras_transformer.text.tokenizer import MANIFEST
from keras_transformer.weights.adapters import ADAPTER, Adapter

CONFIG = "config.json"
QUALITY = "quality.json"  # a saved `translate.quality_estimation.QualityEstimator`
EMBEDDING = "embedding.safetensors"  # weights of a text embedder after the pooling
# Files of an earlier model, which a save replaces.
OF_A_MODEL = (MODEL, ADAPTER, QUALITY, TEMPLATE, SHORTLIST, EMBEDDING)
FORMAT = 2
FLOATS = ("float32", "bfloat16", "float16")
PRECISIONS = (*FLOATS, "int8", *BLOCKS)


def save_folder(
    folder: str | os.PathLike,
    model: keras.Model,
    tokenizer: Any,
    facts: Mapping[str, Any],
    parts: Iterable[Any] = (),
    base: str | os.PathLike | None = None,
) -> None:
    """Write `model.keras`, the tokenizer's files, `config.json`, a model card and further parts.

    With a base, write `adapter.safetensors` in place of `model.keras`: only what LoRA and a new
    head added to the base, which stays where it is. Both kinds of folders load alike.

    Other files in the folder are kept, except those that killed processes left. Everything is
    written under other names first: an error or a kill leaves the old model, or the new one.
    Any backend can load what another one saved.

    Args:
        folder: Folder to write to; created if missing.
        model: Model with a `config`; LoRA products not yet merged are merged into what is saved.
        tokenizer: Object with `save(folder)` and `fingerprint()`; None: the model reads no text.
        facts: Further entries of `config.json`, plain values.
        parts: Objects with `save(folder)`, or None: chat template, shortlist. Those of an earlier
            model are removed.
        base: Folder of the saved model, or of the checkpoint in Hugging Face's layout, that the
            training with LoRA started from; None: save the whole model.

    Raises:
        ValueError: If a base is given, but it is no saved model or the model has no LoRA, or if
            the folder holds a whole model.
    """
    folder = Path(folder)
    if base is not None:
        adapter = Adapter.of(model)
        facts = dict(facts) | {"adapter": facts_of(adapter, Path(base), folder)}
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "format": FORMAT,
        **facts,
        "tokenizer": tokenizer and tokenizer.fingerprint(),
        "model": model.config.to_dict(),
    }
    remove_stale(folder)
    with updating(folder, MODEL, gone=OF_A_MODEL) as new:
        for part in filter(None, (tokenizer, *parts)):
            part.save(new)
        if base is None:
            # The copy has no optimizer and no loss; with them, loading would need their classes.
            whole = merged(model)
            if getattr(model, "saved_quantization", None):
                whole.quantize(model.saved_quantization, remainders=True)
            whole.save(new / MODEL)
        else:
            adapter.write(new / ADAPTER)
        write_json(new / CONFIG, config)
        write_card(folder, config, into=new)


def read_config(
    folder: str | os.PathLike,
    what: str,
    tokenizer_file: str | None = None,
    precision: str | None = None,
) -> dict[str, Any]:
    """Return the `config.json` of a saved folder after checking the folder.

    Args:
        folder: Folder that `save_folder` wrote.
        what: Kind of the saved object in error messages. If it is one of `kinds.KINDS`, such as
            "translator", the folder must be of that kind.
        tokenizer_file: Tokenizer file that must exist; None: there may be no tokenizer.
        precision: Precision to check, see `load_model`.

    Raises:
        ValueError: If the folder is not such an object, or the precision is unknown.
    """
    accepted = f"one of {PRECISIONS} or None"
    require(precision in (*PRECISIONS, None), "precision", precision, accepted)
    folder = Path(folder)
    complete(folder)
    if not folder.is_dir():
        problem = "it is a file" if folder.is_file() else "there is no such folder"
        if is_name(folder):
            problem += f", and no such model: {known_models()}"
        if is_hub_name(folder):
            problem += f"; a model of that name on Hugging Face's hub: `{import_command(folder)}`"
        raise ValueError(f"{folder} is not a saved {what}: {problem}")
    _require_file(folder, what, CONFIG)
    config = read_json(folder / CONFIG)
    if kind := checkpoint_type(folder):
        raise ValueError(
            f"{folder} is not a saved {what} but a Hugging Face checkpoint of type {kind}: "
            f"`{import_command(folder)}` imports it; so does load_pretrained, in Python"
        )
    adapted = isinstance(config, dict) and config.get("adapter") is not None
    _require_file(folder, what, ADAPTER if adapted else MODEL)
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ValueError(
            f'{folder / CONFIG} is not the config of a {what}: its "format" must be {FORMAT}: '
            "another version of keras_transformer may read it"
        )
    some_text = "a non-empty string", lambda x: isinstance(x, str) and x != ""
    text_or_none = "a non-empty string or null", lambda x: x is None or some_text[1](x)

    def check(name: str, accepted: str, is_accepted: Callable[[Any], bool]) -> None:
        value = config.get(name)
        require(is_accepted(value), f'"{name}" in {folder / CONFIG}', value, accepted)

    check("model", "an object", lambda x: isinstance(x, dict))
    check("task", *(some_text if "task" in config else text_or_none))
    check("adapter", "an object or null", lambda x: x is None or isinstance(x, dict))
    check("source_language", *text_or_none)
    check("target_language", *text_or_none)
    check("directions", "a list of pairs of languages", _are_directions)
    require_kind(what, config, folder)
    if tokenizer_file:
        _require_file(folder, what, tokenizer_file)
    check("tokenizer", *(some_text if tokenizer_file else text_or_none))
    return config


def _are_directions(value: Any) -> bool:
    """Return whether a value is a list of pairs of language codes, or left out."""
    pairs = [] if value is None else value
    return isinstance(pairs, list) and all(
        isinstance(x, list) and len(x) == 2 and all(isinstance(y, str) and y for y in x)
        for x in pairs
    )


def _require_file(folder: Path, what: str, name: str) -> None:
    if not (folder / name).is_file():
        raise ValueError(f"{folder} is not a saved {what}: it has no {name}")


def load_model(
    folder: str | os.PathLike, config: Mapping[str, Any], tokenizer: Any, precision: str | None
) -> keras.Model:
    """Load the model of a saved folder.

    Args:
        folder: Folder that `save_folder` wrote.
        config: Its config, from `read_config`.
        tokenizer: Its tokenizer; None: it has none.
        precision: "float32", "bfloat16" or "float16" for weights and arithmetic of that type;
            "int8" for dense and token weights rounded to 8 bits with a remainder of 4 bits, and
            arithmetic in float32; "q4" or "q8" for weights in blocks of 4 or 8 bits, which stay
            so in memory; None: as saved. A type in which this machine is slower than in
            float32 becomes float32, with a warning. If `backend.is_strict`, it is used
            nevertheless, and "int8" multiplies in 8 bits.

    Raises:
        ValueError: If the tokenizer is not the one that the model was trained with, the precision
            does not fit, or the model cannot be read.
    """
    folder = Path(folder)
    if (tokenizer and tokenizer.fingerprint()) != config.get("tokenizer"):
        raise ValueError(f"the tokenizer in {folder} is not the one its model was trained with")
    model = in_precision(read_weights(folder, config), precision, folder)
    return_memory()
    return model


def in_precision(
    model: keras.Model, precision: str | None, source: str | os.PathLike
) -> keras.Model:
    """Return a model with the weights and the arithmetic of a precision.

    Args:
        model: The model as read from its files.
        precision: See `load_model`.
        source: The model's folder, for errors.

    Raises:
        ValueError: If the model does not have such weights.
    """
    if model.quantization in BLOCKS and precision in (model.quantization, None):
        return model
    if model.quantization not in ("int8", *BLOCKS, None):
        accepted = f"{model.quantization!r} or None: {source} has no other weights"
        require(precision in (model.quantization, None), "precision", precision, accepted)
        return model
    if precision in BLOCKS:
        return narrowed(widened(model) if model.quantization else model, str(precision))
    if model.quantization in BLOCKS:
        model = widened(model)
    if precision == "int8" or (precision is None and model.quantization):
        if not model.quantization:
            model.quantize("int8", remainders=True)
        return model if is_strict() else widened(model)
    if model.quantization:
        model = widened(model)
        model.saved_quantization = None
    as_saved = model._policy.compute_dtype
    precision_here = usable_precision(precision or as_saved)
    if precision is None and precision_here == as_saved:
        return model
    with skip_init():
        copy = type(model).from_config(model.get_config() | {"dtype": precision_here})
    copy.set_weights(model.get_weights())
    return copy


def load_with_tokenizer(
    folder: str | os.PathLike,
    what: str,
    family: type[keras.Model] | tuple[type[keras.Model], ...] = keras.Model,
    precision: str | None = None,
) -> tuple[keras.Model, TextTokenizer]:
    """Load a model with one input text and its `TextTokenizer` from a saved folder.

    Args:
        folder: Folder that `save_folder` wrote.
        what: See `read_config`.
        family: Class that the model must have, or a tuple of accepted classes.
        precision: See `load_model`.

    Raises:
        ValueError: If the folder is not such an object, its model has another class, or a file is
            broken.
    """
    config = read_config(folder, what, FILE, precision)
    if "task" not in config:  # a translator, whose tokenizer.json has another form
        raise ValueError(f"{folder} is not a saved {what} but a translator")
    tokenizer = TextTokenizer.read(folder)
    model = load_model(folder, config, tokenizer, precision)
    if not isinstance(model, family):
        raise ValueError(f"{folder} is not a saved {what} but a {type(model).__name__}")
    return model, tokenizer


def load_with_sides(
    folder: str | os.PathLike, what: str, precision: str | None = None
) -> tuple[keras.Model, Tokenizer, dict[str, Any]]:
    """Load a model from source to target texts, its `Tokenizer` and the `config.json`.

    Args:
        folder: Folder that `save_folder` wrote.
        what: See `read_config`.
        precision: See `load_model`.

    Raises:
        ValueError: If the folder is not such an object, or a file is broken or missing.
    """
    tokenizer, config = read_with_sides(folder, what, precision)
    return load_model(folder, config, tokenizer, precision), tokenizer, config


def read_with_sides(
    folder: str | os.PathLike, what: str, precision: str | None = None
) -> tuple[Tokenizer, dict[str, Any]]:
    """Load the `Tokenizer` of a model from source to target texts, and the `config.json`.

    The arguments and errors are those of `load_with_sides`.
    """
    config = read_config(folder, what, MANIFEST, precision)
    try:
        return load_tokenizer(folder), config
    except FileNotFoundError as error:
        raise ValueError(f"{folder} is not a saved {what}: {error}") from error
