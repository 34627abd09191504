"""The preprocessor of a folder in Hugging Face's layout: how images or sounds become inputs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import require
from keras_transformer.system.files import read_json
from keras_transformer.system.foreign_fields import FieldTable

NAME, WHOLE = "preprocessor_config.json", "processor_config.json"


def read_preprocessor(
    folder: str | os.PathLike, part: str, table: FieldTable
) -> tuple[Mapping[str, Any], str]:
    """Return the checked fields of a preprocessor, and the name of their place, for messages.

    They are in a part of `processor_config.json`, which `transformers` 5 writes, or else in
    `preprocessor_config.json`. Without either, an empty dict is returned.

    Args:
        folder: Folder of the checkpoint.
        part: Name of the part: "image_processor" or "feature_extractor".
        table: Table of the fields that are read, harmless or refused.

    Raises:
        ValueError: If a file is broken, or a field has a value that is not supported; names it.
    """
    path = Path(folder, WHOLE)
    whole = read_json(path) if path.is_file() else {}
    require(isinstance(whole, Mapping), f"the content of {path}", whole, "an object")
    facts = whole.get(part)
    if facts is None:
        path = Path(folder, NAME)
        return table.read_from(path), str(path)
    require(isinstance(facts, Mapping), f"{part} in {path}", facts, "an object")
    place = f"{part} of {path}"
    table.check(facts, place)
    return facts, place
