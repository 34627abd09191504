"""The facts of a training run for its model card: command, options, data files, versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import keras

from keras_transformer import __version__
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.saved.card import Run, write_card
from keras_transformer.saved.contents import ADAPTER, CONFIG, MODEL, read_config
from keras_transformer.training.corpus_options import CorpusOptions
from keras_transformer.training.fine_tuning import ADAPTER_FOLDER

LARGE = 1 << 30  # bytes; larger files get no hash in the card, since it takes seconds per GiB


def write_run_card(folder: Path, train: Callable, given: Mapping[str, Any]) -> None:
    """Write the model cards of a run's saved model and of its adapter, if they exist.

    Args:
        folder: Folder of the run.
        train: The function that trained.
        given: The arguments of the call, by name.
    """
    if not all((folder / name).is_file() for name in (CONFIG, MODEL)):
        return
    metrics = read_metrics(folder)
    files = dict.fromkeys([*_files(given.values()), *_corpora(given, metrics)])
    run = Run(
        command(sys.orig_argv),
        train.__module__,
        {name: _plain(x) for name, x in given.items() if x is not None and x is not False},
        [_described(path) for path in files],
        _versions(),
        metrics,
    )
    write_card(folder, read_config(folder, "model"), run)
    adapter = folder / ADAPTER_FOLDER
    if (adapter / ADAPTER).is_file():
        write_card(adapter, read_config(adapter, "model"), run)


def command(arguments: list[str]) -> str:
    """Return a command line; an argument that is an absolute path is cut to its last part.

    Args:
        arguments: `sys.orig_argv`. The first, the Python interpreter, is left out, or is "python"
            before "-m".
    """
    rest = [Path(x).name if os.path.isabs(x) else x for x in arguments[1:]]
    return shlex.join((["python"] if rest[:1] == ["-m"] else []) + rest)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, Path):
        return value.name if value.is_absolute() else value.as_posix()
    return value if isinstance(value, str | int | float | bool | dict) else str(value)


def _files(values: Iterable[Any]) -> Iterable[Path]:
    """Yield the paths of existing files among arguments, also those in lists."""
    for value in values:
        if isinstance(value, Path) and value.is_file():
            yield value
        elif isinstance(value, list | tuple):
            yield from _files(value)


def _corpora(given: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterable[Path]:
    """Yield the files of the tables `corpora` of a recipe."""
    if "recipe" not in given:  # only runs of translators have a recipe
        return
    for table in metrics.get("training", {}).get("recipe", {}).get("corpora", ()):
        room = given.get("data_folder") or Path(given["recipe"]).parent
        corpus = CorpusOptions(**table)
        yield from _files(
            room / name for part in ("", "validation_") for name in corpus.files(part)
        )


def _described(path: Path) -> tuple[str, int, str | None]:
    size = path.stat().st_size
    if size > LARGE:
        return path.name, size, None
    with path.open("rb") as file:
        return path.name, size, hashlib.file_digest(file, "sha256").hexdigest()


def _versions() -> dict[str, str]:
    """Return the installed versions of the package, Keras, Python and the backend."""
    backend = keras.backend.backend()
    version = ".".join(map(str, sys.version_info[:3]))
    versions = {"keras_transformer": __version__, "keras": keras.__version__, "python": version}
    try:
        versions[backend] = importlib.metadata.version(backend)
    except importlib.metadata.PackageNotFoundError:  # has another name, such as tensorflow-cpu
        versions[backend] = getattr(sys.modules.get(backend), "__version__", "unknown")
    return versions
