"""The Transformer for Keras 3, and a complete translation stack on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from keras_transformer.system.registration import register_with_keras
from keras_transformer.system.startup import prepare

if TYPE_CHECKING:
    from keras_transformer.config import TransformerConfig
    from keras_transformer.corpora import score_corpus, translate_corpus
    from keras_transformer.distribution import distribute
    from keras_transformer.inference.adapters import Adapters
    from keras_transformer.inference.causal_lm import CausalLM
    from keras_transformer.inference.chat import Chat
    from keras_transformer.inference.ensemble import ensemble
    from keras_transformer.inference.image_classifier import ImageClassifier
    from keras_transformer.inference.image_embedder import ImageEmbedder
    from keras_transformer.inference.mask_filler import MaskFiller
    from keras_transformer.inference.parser import Parser
    from keras_transformer.inference.pipeline import Hypothesis
    from keras_transformer.inference.pretrained import load_pretrained
    from keras_transformer.inference.question_answerer import QuestionAnswerer
    from keras_transformer.inference.rewarder import Rewarder
    from keras_transformer.inference.synthesizer import Synthesizer
    from keras_transformer.inference.text_classifier import TextClassifier
    from keras_transformer.inference.text_embedder import TextEmbedder
    from keras_transformer.inference.text_scorer import TextScorer
    from keras_transformer.inference.token_tagger import TokenTagger
    from keras_transformer.inference.transcriber import Transcriber
    from keras_transformer.inference.translator import Translator
    from keras_transformer.losses import LabelSmoothedCrossentropy
    from keras_transformer.metrics import MaskedAccuracy, Perplexity
    from keras_transformer.models import Transformer
    from keras_transformer.optimizers import WarmupSchedule, adam
    from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
    from keras_transformer.text.glossary import Glossary

__version__ = "0.1.0"

prepare()
register_with_keras()

# Imported on first access: a process that only makes batches does not need Keras.
_HOMES = {
    "Adapters": "inference.adapters",
    "CausalLM": "inference.causal_lm",
    "Chat": "inference.chat",
    "TransformerConfig": "config",
    "Glossary": "text.glossary",
    "ImageClassifier": "inference.image_classifier",
    "ImageEmbedder": "inference.image_embedder",
    "LabelSmoothedCrossentropy": "losses",
    "MaskFiller": "inference.mask_filler",
    "MaskedAccuracy": "metrics",
    "Parser": "inference.parser",
    "Perplexity": "metrics",
    "Rewarder": "inference.rewarder",
    "Transformer": "models",
    "WarmupSchedule": "optimizers",
    "adam": "optimizers",
    "distribute": "distribution",
    "ensemble": "inference.ensemble",
    "SentencePieceTokenizer": "text",
    "load_tokenizer": "text",
    "QuestionAnswerer": "inference.question_answerer",
    "Synthesizer": "inference.synthesizer",
    "TextClassifier": "inference.text_classifier",
    "TextEmbedder": "inference.text_embedder",
    "TextScorer": "inference.text_scorer",
    "TokenTagger": "inference.token_tagger",
    "Transcriber": "inference.transcriber",
    "Hypothesis": "inference.pipeline",
    "Translator": "inference.translator",
    "load_pretrained": "inference.pretrained",
    "score_corpus": "corpora",
    "translate_corpus": "corpora",
}

__all__ = [
    "Adapters",
    "CausalLM",
    "Chat",
    "Glossary",
    "Hypothesis",
    "ImageClassifier",
    "ImageEmbedder",
    "LabelSmoothedCrossentropy",
    "MaskFiller",
    "MaskedAccuracy",
    "Parser",
    "Perplexity",
    "QuestionAnswerer",
    "Rewarder",
    "SentencePieceTokenizer",
    "Synthesizer",
    "TextClassifier",
    "TextEmbedder",
    "TextScorer",
    "TokenTagger",
    "Transcriber",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "WarmupSchedule",
    "adam",
    "distribute",
    "ensemble",
    "load_pretrained",
    "load_tokenizer",
    "score_corpus",
    "translate_corpus",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'keras_transformer' has no attribute {name!r}")
    return getattr(importlib.import_module(f"keras_transformer.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
