"""The Transformer for Keras 3, and a complete translation stack on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from keras_transformer.startup import prepare

if TYPE_CHECKING:
    from keras_transformer.causal_lm import CausalLM
    from keras_transformer.config import TransformerConfig
    from keras_transformer.losses import LabelSmoothedCrossentropy
    from keras_transformer.metrics import MaskedAccuracy, Perplexity
    from keras_transformer.models import Transformer
    from keras_transformer.parallel import TranslatorPool
    from keras_transformer.pretrained import load_pretrained
    from keras_transformer.schedules import WarmupSchedule, adam
    from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
    from keras_transformer.transcriber import Transcriber
    from keras_transformer.translator import Hypothesis, Translator

__version__ = "0.1.0"

prepare()

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
