"""The contents of a saved folder, except its model, read without importing Keras."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import BLOCKS, require
from keras_transformer.hub.gguf.container import SUFFIX
from keras_transformer.saved.kinds import require_kind
from keras_transformer.system.files import complete, read_json
from keras_transformer.system.named_models import ADAPTER, CONFIG, MODEL, is_name, known_models
from keras_transformer.text import Tokenizer, load_tokenizer
from keras_transformer.text.chat_template import ChatTemplate
from keras_transformer.text.prompt_tokenizer import PromptTokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import MANIFEST
from keras_transformer.text.translation_prompt import TranslationPrompt

QUALITY = "quality.json"  # a saved `translate.quality_estimation.QualityEstimator`
EMBEDDING = "embedding.safetensors"  # weights of a text embedder after the pooling
FORMAT = 2  # number of the folder's format, in `config.json`
FLOATS = ("float32", "bfloat16", "float16")
PRECISIONS = (*FLOATS, "int8", *BLOCKS)


def is_saved(folder: str | os.PathLike) -> bool:
    """Return whether a folder holds a saved model or a saved adapter."""
    config, *weights = (Path(folder, name).is_file() for name in (CONFIG, MODEL, ADAPTER))
    return config and any(weights)


def checkpoint_type(folder: str | os.PathLike) -> str | None:
    """Return the `model_type` of a checkpoint in Hugging Face's layout; None for other folders.

    Raises:
        ValueError: If its `config.json` is not valid JSON.
    """
    path = Path(folder, CONFIG)
    foreign_config = read_json(path) if path.is_file() and not is_saved(folder) else None
    kind = foreign_config.get("model_type") if isinstance(foreign_config, dict) else None
    return kind if isinstance(kind, str) else None


def is_hub_name(source: str | os.PathLike) -> bool:
    """Return whether a text can be a name on a hub, `name` or `owner/name`, and is no path."""
    path = Path(source)
    is_name = re.fullmatch(r"[\w.-]+(/[\w.-]+)?", str(source)) and not path.exists()
    return bool(is_name and (path.parent == Path() or not path.parent.exists()))


def import_command(source: str | os.PathLike) -> str:
    """Return the command that imports a checkpoint: a folder, a GGUF file or a name on a hub."""
    out = f"saved_models/{Path(source).resolve().name.removesuffix(SUFFIX)}"
    return f"keras-transformer import {shlex.quote(os.fspath(source))} {shlex.quote(out)}"


def read_config(
    folder: str | os.PathLike,
    what: str,
    tokenizer_file: str | None = None,
    precision: str | None = None,
) -> dict[str, Any]:
    """Return the `config.json` of a saved folder after checking the folder.

    Args:
        folder: Folder that `save_folder` wrote.
        what: Kind of the saved object in error messages. If a kind in `kinds.KINDS` has this name,
            such as "translator", the folder must be of that kind.
        tokenizer_file: Name of the tokenizer file that must exist; None: no tokenizer is needed.
        precision: Precision to check, see `load_model`.

    Raises:
        ValueError: If the folder does not hold such an object, or the precision is unknown.
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
    check("prompt", "an object or null", lambda x: x is None or isinstance(x, dict))
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


def read_with_sides(
    folder: str | os.PathLike, what: str, precision: str | None = None
) -> tuple[Tokenizer, dict[str, Any]]:
    """Load the `Tokenizer` of a model from source to target texts, and the `config.json`.

    The arguments and errors are those of `load_with_sides`.
    """
    config = read_config(folder, what, MANIFEST, precision)
    if (values := config.get("prompt")) is not None:
        return _read_prompted(Path(folder), config, values), config
    try:
        return load_tokenizer(folder), config
    except FileNotFoundError as error:
        raise ValueError(f"{folder} is not a saved {what}: {error}") from error


def _read_prompted(folder: Path, config: Mapping[str, Any], values: Any) -> PromptTokenizer:
    """Return the tokenizer of a language model that translates with a prompt."""
    prompt = TranslationPrompt.of(values, f'"prompt" in {folder / CONFIG}')
    model = config["model"]
    ends = model.get("eos_id")
    ends = ends if isinstance(ends, list | tuple) else [ends]
    template = ChatTemplate.read(folder)
    return PromptTokenizer(TextTokenizer.read(folder), prompt, template, model["vocab_size"], ends)


def fingerprint(folder: Path, config: Mapping[str, Any]) -> str:
    """Return a SHA-256 (hex) of the files that determine the model of a saved folder.

    Args:
        folder: Folder that `save_folder` wrote.
        config: Its `config.json`.
    """
    files = [folder / CONFIG, folder / (MODEL if config.get("adapter") is None else ADAPTER)]
    digest = hashlib.sha256()
    if (adapter := config.get("adapter")) is not None:
        base = folder / str(adapter.get("base"))
        if is_saved(base):
            digest.update(fingerprint(base, read_json(base / CONFIG)).encode())
        else:
            files += sorted(x for x in base.glob("*") if x.is_file())
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
