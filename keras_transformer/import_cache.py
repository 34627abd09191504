"""Cache of imports: a checkpoint or GGUF file is imported once, when it is first loaded."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from keras_transformer.hub.gguf.container import SUFFIX
from keras_transformer.pretrained import (
    FILES,
    PICKLED,
    checkpoint_folder,
    load_pretrained,
)
from keras_transformer.saved.contents import import_command, is_saved
from keras_transformer.system.files import cache_folder, removed, replacing
from keras_transformer.system.locks import waiting

CACHE, LOCK = "imported", ".lock"
FORMAT = 1  # number of the cache's format; imports with another number are made again
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}


def imported(source: str | os.PathLike, report: Callable[[str], None]) -> Path:
    """Return the folder of a checkpoint's import, a saved model; import it if it is not there.

    Imports are in `~/.cache/keras_transformer/imported` (or below `XDG_CACHE_HOME`), one for each
    checkpoint. If the sizes or times of a checkpoint's files have changed, it is
    imported again, in place of the earlier import. Other processes wait meanwhile.

    Args:
        source: Folder in Hugging Face's layout; a GGUF file; or the name of a model on the hub,
            whose files are downloaded if they are not in the cache of `huggingface_hub`.
        report: Function that shows a line to the user, before an import.

    Raises:
        ConnectionError: If the model is not in the cache and the hub cannot be reached; names the
            command that imports it elsewhere.
        ImportError, OSError, ValueError: See `load_pretrained`; OSError or ValueError also if the
            cache cannot be written to.
    """
    advice = f"`{import_command(source)}`"
    try:
        checkpoint = checkpoint_folder(source).resolve()
    except ConnectionError as error:
        raise ConnectionError(
            f"there is no folder {source}, and its model cannot be fetched: run {advice} where the "
            f"hub can be reached, and give the folder that it writes ({error})"
        ) from error
    room = cache_folder(CACHE) / hashlib.sha256(os.fsencode(checkpoint)).hexdigest()[:16]
    name = checkpoint.name if Path(source).is_dir() else Path(source).name.removesuffix(SUFFIX)
    place = room / _fingerprint(checkpoint) / name
    try:
        room.mkdir(parents=True, exist_ok=True)
        with waiting(room / LOCK):
            if not is_saved(place):
                report(f"importing {source} into {place}")
                with replacing(place.parent) as temporary:
                    temporary.mkdir()
                    load_pretrained(checkpoint).save(temporary / name)
                removed(*(x for x in room.iterdir() if x not in (place.parent, room / LOCK)))
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        raise ValueError(
            f"{source} is a checkpoint, and the cache {room} for its import cannot be written to "
            f"({error.strerror}): run {advice}, or name another cache in XDG_CACHE_HOME"
        ) from error
    return place


def _fingerprint(checkpoint: Path) -> str:
    """Return a hash of the names, sizes and times of a checkpoint's files, or of its one file."""
    patterns = (*FILES, PICKLED)
    paths = {x for y in patterns for z in (y, f"*/{y}") for x in checkpoint.glob(z)}
    paths |= {checkpoint} if checkpoint.is_file() else set()
    files = [(x.relative_to(checkpoint).as_posix(), x.stat()) for x in sorted(paths)]
    text = repr([FORMAT, *((name, x.st_size, x.st_mtime_ns) for name, x in files)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
