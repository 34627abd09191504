"""Conversion of a model to CTranslate2's format, cached in the folder of its translator."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_transformer import models
from keras_transformer.hub.ctranslate2 import write_model
from keras_transformer.saved.folder import load_model
from keras_transformer.saved.model_files import fingerprint
from keras_transformer.system.files import read_json, replacing, write_json
from keras_transformer.system.locks import waiting
from keras_transformer.text import Tokenizer

CACHE, LOCK, FACTS = ".ctranslate2", ".ctranslate2.lock", "converted.json"
FORMAT = 1  # version of the cache; models of another version are converted again
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def converted(
    folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer
) -> Iterator[tuple[Path, Any]]:
    """Yield the folder of the converted model, and the model's config.

    The converted model is in the subfolder `.ctranslate2`. It is written if it is missing or was
    converted from other files; meanwhile, other processes wait. If the folder is read-only, the
    model is converted into a temporary folder, which is removed at the end.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.

    Raises:
        ValueError: If CTranslate2 cannot represent the model.
    """
    import ctranslate2

    place = folder / CACHE
    origin = f"{FORMAT} {ctranslate2.__version__} {fingerprint(folder, saved)}"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(waiting(folder / LOCK))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
            if _origin(place) != origin:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory()), CACHE)
        if _origin(place) != origin:
            _convert(folder, saved, tokenizer, place, origin)
        family = read_json(place / FACTS)["family"]
        yield place, getattr(models, family).config_class.from_dict(dict(saved["model"]))


def _origin(place):
    """Return the versions and fingerprint that a model was converted from; None: no such model."""
    path = place / FACTS
    return read_json(path)["origin"] if path.is_file() else None


def _convert(folder, saved, tokenizer, place, origin):
    """Convert a model to CTranslate2's format, and write it with its origin."""
    try:
        model = load_model(folder, saved, tokenizer, "float32")
        with replacing(place) as temporary:
            temporary.mkdir()
            write_model(temporary, model, tokenizer)
            write_json(temporary / FACTS, {"origin": origin, "family": type(model).__name__})
    except ValueError as error:
        raise ValueError(f'{folder} cannot run with engine="ctranslate2": {error}') from error
