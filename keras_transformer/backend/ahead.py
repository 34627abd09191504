"""Compilation of functions ahead of time, for later processes, too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import keras

from keras_transformer.backend.compilation import BACKEND

if TYPE_CHECKING:
    from keras_transformer.backend.torch.packages import Packages


def packages(model: keras.Model, folder: Path) -> Packages:
    """Return what compiles functions over a model, on PyTorch, see `backend.torch.packages`.

    Args:
        model: The model.
        folder: Folder of the compiled functions.

    Raises:
        ValueError: On another backend, or a model that is not on the processor.
        ImportError: If there is no C++ compiler.
    """
    if BACKEND != "torch":
        raise ValueError(f"KERAS_BACKEND must be 'torch', got {BACKEND!r}, which always compiles")
    from keras_transformer.backend.torch.packages import Packages  # takes long to import

    return Packages(model, folder)
