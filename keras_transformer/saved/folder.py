"""Saved folders: a model with its tokenizer and config, written atomically, checked on loading."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_transformer.backend import is_strict, usable_precision
from keras_transformer.config import BLOCKS, require
from keras_transformer.layers.layer import skip_init
from keras_transformer.models import merged, narrowed, widened
from keras_transformer.saved.card import write_card
from keras_transformer.saved.contents import (
    ADAPTER,
    CONFIG,
    EMBEDDING,
    FORMAT,
    MODEL,
    QUALITY,
    read_config,
    read_with_sides,
)
from keras_transformer.saved.model_files import facts_of, read_weights
from keras_transformer.system.files import remove_stale, updating, write_json
from keras_transformer.system.memory import return_memory
from keras_transformer.text import Tokenizer
from keras_transformer.text.chat_template import FILE as TEMPLATE
from keras_transformer.text.lexical_shortlist import FILE as SHORTLIST
from keras_transformer.text.text_tokenizer import FILE, TextTokenizer
from keras_transformer.weights.adapters import Adapter

# Files of an earlier model, which a save replaces or removes.
OF_A_MODEL = (MODEL, ADAPTER, QUALITY, TEMPLATE, SHORTLIST, EMBEDDING)


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
    head added. `config.json` then names the folder of the base. Both kinds of folders load alike.

    Other files in the folder are kept, except those that killed processes left; so is a model card
    that somebody edited. Everything is written under other names first, so that an error or a
    kill leaves either the old model or the new one. Any backend can load the folder.

    Args:
        folder: Folder to write to; created if missing.
        model: Model with a `config`. Without a base, LoRA's products are merged into the weights
            that are written; the model itself stays as it is.
        tokenizer: Object with `save(folder)` and `fingerprint()`; None: the model reads no text.
        facts: Further entries of `config.json`, plain values.
        parts: Further objects with `save(folder)`, such as a chat template, or None. Files that
            only an earlier model had (`OF_A_MODEL`) are removed.
        base: Folder of the saved model, or of the checkpoint in Hugging Face's layout, that the
            training with LoRA started from; None: save the whole model.

    Raises:
        ValueError: With a base, if that is no saved model, the model has no LoRA, or the folder
            holds a whole model.
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
            so in memory; None: as saved. If a 16-bit type would be slower than float32 on this
            machine, float32 is used, with a warning. If `backend.is_strict()`, the type is used
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
        ValueError: If the model is quantized in a form that cannot be converted to this precision.
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
        ValueError: If the folder does not hold such an object, its model has another class, or a
            file is broken.
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
        ValueError: If the folder does not hold such an object, or a file is broken or missing.
    """
    tokenizer, config = read_with_sides(folder, what, precision)
    return load_model(folder, config, tokenizer, precision), tokenizer, config
