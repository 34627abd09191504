"""A GGUF file as a checkpoint in Hugging Face's layout; the weights stay in the file."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_transformer.hub.gguf.container import GGUFFile
from keras_transformer.hub.gguf.metadata import architecture_of, config_of, generation_of
from keras_transformer.hub.gguf.rope_scaling import FACTORS, LONG, SHORT
from keras_transformer.hub.gguf.tokens import tokenizer_of
from keras_transformer.system.files import write_json

NAME = "model.gguf"


@contextlib.contextmanager
def unpacked(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder in Hugging Face's layout with the content of a GGUF file.

    Its weights are a link to the file, from which they are read one by one. In the message of a
    ValueError of the body, the file's path replaces the folder's, and its keys the names of sizes.

    Args:
        path: The file.

    Raises:
        FileNotFoundError, ImportError, ValueError: See `GGUFFile`, `architecture_of`, `config_of`
            and `tokenizer_of`.
    """
    file = GGUFFile(path)
    architecture = architecture_of(file)
    name = file.facts["general.architecture"]
    keys = {field: f"{name}.{key}" for key, field in architecture.sizes.items()}
    with tempfile.TemporaryDirectory(prefix="gguf-") as room:
        folder = Path(room).resolve()
        try:
            content, options = tokenizer_of(file)
            config, generation = config_of(file, architecture), generation_of(file)
        except (TypeError, AttributeError, ArithmeticError, LookupError) as error:
            raise ValueError(f"{path} has metadata of a wrong type: {error}") from error
        write_json(folder / "config.json", config)
        write_json(folder / "generation_config.json", generation)
        write_json(folder / "tokenizer.json", content)
        write_json(folder / "tokenizer_config.json", options)
        (folder / NAME).symlink_to(Path(path).resolve())
        try:
            yield folder
        except ValueError as error:
            raise ValueError(_in_words_of(file.path, folder, keys, str(error))) from error


def _in_words_of(path, folder, keys, message):
    """Return a message about the folder as one about the file."""
    for name in ("config.json", "generation_config.json", NAME):
        message = message.replace(str(folder / name), str(path))
    message = message.replace(str(folder), str(path))
    return re.sub(rf"\b({'|'.join(keys)})\b", lambda match: keys[match[0]], message)


def open_tensors(path: Path) -> tuple[dict[str, Callable[[], np.ndarray]], int]:
    """Open the tensors of a GGUF file.

    Args:
        path: The file.

    Returns:
        A function for each tensor, by its name in Hugging Face's layout, that returns it in
        float32; and the number of elements of all tensors. Tensors with factors of rotary rates are
        left out of both.
    """
    file = GGUFFile(path)
    architecture = architecture_of(file)
    config = config_of(file, architecture)
    count: Any = config.get("num_attention_heads")
    heads: dict[str, Any] = {"attn_q": count, "attn_k": config.get("num_key_value_heads", count)}

    def read(name: str) -> np.ndarray:
        return architecture.their_value(name, file.read(name), heads)

    names = [name for name in file.tensors if name not in (FACTORS, SHORT, LONG)]
    readers: dict[str, Callable[[], np.ndarray]] = {
        architecture.their_name(name): functools.partial(read, name) for name in names
    }
    return readers, sum(math.prod(file.tensors[name].shape) for name in names)
