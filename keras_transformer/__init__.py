"""The Transformer for Keras 3, and a complete translation stack on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keras_transformer.causal_lm import CausalLM
    from keras_transformer.config import TransformerConfig
    from keras_transformer.losses import LabelSmoothedCrossentropy
    from keras_transformer.metrics import MaskedAccuracy, Perplexity
    from keras_transformer.models import Transformer
    from keras_transformer.parallel import TranslatorPool
    from keras_transformer.schedules import WarmupSchedule, adam
    from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
    from keras_transformer.transcriber import Transcriber
    from keras_transformer.translator import Hypothesis, Translator

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
# TensorFlow's C++ logs an error for each machine without a GPU.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# PyTorch on CPU: large pages for large tensors. Mapping (tokens x vocabulary) anew at each step in
# small pages costs more than computing it.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

# Imported when first asked for: a process that only makes batches needs no Keras.
_HOMES = {
    "CausalLM": "causal_lm",
    "TransformerConfig": "config",
    "LabelSmoothedCrossentropy": "losses",
    "MaskedAccuracy": "metrics",
    "Perplexity": "metrics",
    "Transformer": "models",
    "WarmupSchedule": "schedules",
    "adam": "schedules",
    "SentencePieceTokenizer": "text",
    "load_tokenizer": "text",
    "Transcriber": "transcriber",
    "Hypothesis": "translator",
    "Translator": "translator",
    "TranslatorPool": "parallel",
    "load_pretrained": "pretrained",
}

__all__ = [
    "CausalLM",
    "Hypothesis",
    "LabelSmoothedCrossentropy",
    "MaskedAccuracy",
    "Perplexity",
    "SentencePieceTokenizer",
    "Transcriber",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "TranslatorPool",
    "WarmupSchedule",
    "adam",
    "load_pretrained",
    "load_tokenizer",
]


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'keras_transformer' has no attribute {name!r}")
    return getattr(importlib.import_module(f"keras_transformer.{_HOMES[name]}"), name)
