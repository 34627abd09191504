"""Cache of a model in an engine's own format, in the folder of its translator."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_transformer.config import Config, T5Config, TransformerConfig, require
from keras_transformer.saved.contents import fingerprint
from keras_transformer.system.files import read_json, replacing, write_json
from keras_transformer.system.locks import waiting

FACTS = "converted.json"
# Class of the config, by the name of the model's class.
CONFIGS: dict[str, type[Config]] = {"Transformer": TransformerConfig, "T5": T5Config}
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def converted(
    folder: Path,
    saved: Mapping[str, Any],
    name: str,
    version: str,
    convert: Callable[[Path], str],
) -> Iterator[tuple[Path, Any]]:
    """Yield the folder of the converted model, and the model's config.

    The converted model is in a subfolder. It is written if it is missing or was converted from
    other files; meanwhile, other processes wait. If the folder is read-only, the model is converted
    into a temporary folder, which is removed at the end.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        name: Name of the subfolder, such as ".ctranslate2".
        version: Version of the format; models of another version are converted again.
        convert: Function that writes the converted model into an existing folder, and returns the
            name of the model's class.

    Raises:
        ValueError: If the engine cannot represent the model.
    """
    place = folder / name
    origin = f"{version} {fingerprint(folder, saved)}"
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(waiting(folder / f"{name}.lock"))
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise
            if _origin(place) != origin:
                place = Path(stack.enter_context(tempfile.TemporaryDirectory()), name)
        if _origin(place) != origin:
            with replacing(place) as temporary:
                temporary.mkdir()
                family = convert(temporary)
                accepted = f"one of {sorted(CONFIGS)} for this engine"
                require(family in CONFIGS, "the class of the model", family, accepted)
                write_json(temporary / FACTS, {"origin": origin, "family": family})
        family = read_json(place / FACTS)["family"]
        yield place, CONFIGS[family].from_dict(dict(saved["model"]))


def _origin(place):
    """Return the version and fingerprint that a model was converted from; None: no such model."""
    path = place / FACTS
    return read_json(path)["origin"] if path.is_file() else None
