"""The Transformer for Keras 3, and a complete translation stack on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

__version__ = "0.1.0"

_BACKENDS = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def _choose_backend() -> None:
    """Checks KERAS_BACKEND; without it and without a Keras configuration, takes the first there is.

    Keras itself falls back to TensorFlow even where only another backend is installed.
    """
    if "keras" in sys.modules:
        return
    asked = os.environ.get("KERAS_BACKEND")
    installed = [name for name, module in _BACKENDS.items() if importlib.util.find_spec(module)]
    if asked:
        if asked not in _BACKENDS:
            raise ValueError(f"KERAS_BACKEND must be one of {sorted(_BACKENDS)}, got {asked!r}")
        if asked not in installed:
            raise ImportError(
                f"KERAS_BACKEND is {asked!r}, which is not installed: "
                f'pip install "keras-transformer[{asked}]"'
            )
    elif not installed:
        raise ImportError(
            "keras_transformer needs one of TensorFlow, JAX and PyTorch: "
            'pip install "keras-transformer[tensorflow]", or [jax], or [torch]'
        )
    else:
        home = Path(os.environ.get("KERAS_HOME", Path.home() / ".keras"))
        if not (home / "keras.json").exists():
            os.environ["KERAS_BACKEND"] = installed[0]


_choose_backend()
if os.environ.get("KERAS_BACKEND") == "tensorflow":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

