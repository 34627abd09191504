"""Models by name, such as "tatoeba": those in `saved_models/`, then those of installed packages."""

from __future__ import annotations

import os
import re
from importlib import metadata, util
from pathlib import Path

FOLDER = Path("saved_models")  # in the current directory
GROUP = "keras_transformer.models"  # group of the entry points of packages with models
CONFIG = "config.json"  # each saved model has this file, and one of the next two
MODEL, ADAPTER = "model.keras", "adapter.safetensors"


def located(model: str | os.PathLike) -> Path:
    """Return the folder of a model.

    Args:
        model: A folder, or a name: that of a folder in `saved_models/`, else that of a model in an
            installed package. Such a package declares an entry point of the group
            `keras_transformer.models`, whose value is the module that contains the files.

    Returns:
        The folder; `model` as a path if there is no such folder and no such model.
    """
    path = Path(model)
    if path.exists() or not is_name(model):
        return path
    if (FOLDER / path / CONFIG).is_file():
        return FOLDER / path
    return installed_models().get(str(path), path)


def is_name(model: str | os.PathLike) -> bool:
    """Return whether a text can be the name of a model: a single part of a path."""
    return re.fullmatch(r"\w[\w.-]*", os.fspath(model)) is not None


def installed_models() -> dict[str, Path]:
    """Return the folders of the models of installed packages by name.

    An entry point whose module is missing is left out. The modules are not imported, only the
    packages that contain them.
    """
    folders: dict[str, Path] = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            module = util.find_spec(entry.module)
        except ImportError:
            continue
        for place in (module and module.submodule_search_locations) or ():
            folders.setdefault(entry.name, Path(place))
    return folders


def known_models() -> str:
    """Return which models can be named here, and how to get more, for an error message."""
    saved = sorted(x.parent.name for x in FOLDER.glob(f"*/{CONFIG}"))
    installed = sorted(installed_models())
    return (
        f"{FOLDER}/ has {', '.join(saved) or 'none'}, installed packages have "
        f"{', '.join(installed) or 'none'}; `keras-transformer train` and `import` make more"
    )
