"""Cache of a model in CTranslate2's format, in the folder of its translator."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import Config, T5Config, TransformerConfig
from keras_transformer.saved.contents import fingerprint
from keras_transformer.system.files import read_json, replacing, write_json
from keras_transformer.system.locks import waiting
from keras_transformer.text import Tokenizer
from keras_transformer.translate import engines

CACHE, LOCK, FACTS = ".ctranslate2", ".ctranslate2.lock", "converted.json"
FORMAT = 1  # version of the cache; models of another version are converted again
# Class of the config, by the name of the model's class.
CONFIGS: dict[str, type[Config]] = {"Transformer": TransformerConfig, "T5": T5Config}
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
            with replacing(place) as temporary:
                temporary.mkdir()
                family = engines.convert(folder, saved, tokenizer, temporary)
                write_json(temporary / FACTS, {"origin": origin, "family": family})
        family = read_json(place / FACTS)["family"]
        yield place, CONFIGS[family].from_dict(dict(saved["model"]))


def _origin(place):
    """Return the versions and fingerprint that a model was converted from; None: no such model."""
    path = place / FACTS
    return read_json(path)["origin"] if path.is_file() else None
