"""Arguments that take saved models: folders, or Hugging Face checkpoints by folder or name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


class SavedFolder(type(Path())):  # type: ignore[misc]  # Python 3.11 cannot subclass Path itself
    """A folder that a command loads a model from, as the command line names it."""


def saved(what: str) -> dict[str, Any]:
    """Return Typer's settings of an argument or option that takes folders of saved models.

    Args:
        what: The kind of model with an article, such as "A saved translator".
    """
    text = f"{what}, by folder or by name, such as tatoeba; or a GGUF file, a folder in Hugging "
    text += "Face's layout or a name on its hub, imported once into a cache."
    return dict(parser=SavedFolder, metavar="FOLDER", help=text)


def saved_argument(what: str) -> Any:
    """Return an argument that takes the folder of a saved model; see `saved`."""
    return typer.Argument(**saved(what))


def loadable(folder: str | Path) -> Path:
    """Return the folder to load a model from: the given one, or the import of a checkpoint.

    Before a new import, a line is written to stderr.

    Args:
        folder: Folder of a saved or an exported model, or its name, see `system.named_models`; or
            the folder of a checkpoint in Hugging Face's layout; a GGUF file; or the name of a model
            on the hub.

    Raises:
        ConnectionError, FileNotFoundError, PermissionError, ValueError: If a checkpoint cannot be
            fetched or imported.
    """
    from keras_transformer.cli.common import say
    from keras_transformer.hub.gguf.container import is_gguf
    from keras_transformer.saved.contents import checkpoint_type, is_hub_name
    from keras_transformer.system.named_models import located

    folder = located(folder)
    is_of_hub = "/" in str(folder) and is_hub_name(folder)
    if is_gguf(folder) or checkpoint_type(folder) or is_of_hub:
        from keras_transformer.import_cache import imported

        return imported(folder, say)
    return Path(folder)


def make_loadable(values: dict[str, Any]) -> None:
    """Replace each `SavedFolder` among the values of a command by what `loadable` returns."""
    for name, value in values.items():
        if isinstance(value, SavedFolder):
            values[name] = loadable(Path(value))
        elif isinstance(value, list | tuple) and any(isinstance(x, SavedFolder) for x in value):
            values[name] = [loadable(Path(x)) for x in value]
