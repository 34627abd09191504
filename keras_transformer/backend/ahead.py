"""Compilation of functions ahead of time, also for later processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import keras

from keras_transformer.backend.compilation import BACKEND

if TYPE_CHECKING:
    from keras_transformer.backend.torch.packages import Packages


def packages(model: keras.Model, folder: Path) -> Packages:
    """Return the store of a model's compiled functions, see `backend.torch.packages.Packages`.

    Args:
        model: The model.
        folder: Folder of the compiled functions; created if missing.

    Raises:
        ValueError: If the backend is not PyTorch, or the model is not on the CPU.
        ImportError: If there is no C++ compiler.
    """
    if BACKEND != "torch":
        raise ValueError(f"KERAS_BACKEND must be 'torch', got {BACKEND!r}, which always compiles")
    from keras_transformer.backend.torch.packages import Packages  # takes long to import

    return Packages(model, folder)
