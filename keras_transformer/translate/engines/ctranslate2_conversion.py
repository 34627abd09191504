"""Conversion of a saved translator to CTranslate2's format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.hub.ctranslate2_writer import write_model
from keras_transformer.saved.folder import load_model
from keras_transformer.text import Tokenizer


def convert(folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer, out: Path) -> str:
    """Write the model of a saved translator for CTranslate2; return the name of its class.

    Args:
        folder: Folder of the translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.
        out: Folder to write to; must exist.

    Raises:
        ValueError: If CTranslate2 cannot represent the model.
    """
    try:
        model = load_model(folder, saved, tokenizer, "float32")
        write_model(out, model, tokenizer)
    except ValueError as error:
        raise ValueError(f'{folder} cannot run with engine="ctranslate2": {error}') from error
    return type(model).__name__
