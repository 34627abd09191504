"""The Transformer for Keras 3, and a complete translation stack on TensorFlow, JAX or PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access
from keras_transformer.system.registration import register_with_keras
from keras_transformer.system.startup import prepare

if TYPE_CHECKING:
    from keras_transformer.config import TransformerConfig
    from keras_transformer.corpora import score_corpus, translate_corpus
    from keras_transformer.distribution import distribute
    from keras_transformer.language.causal_lm import CausalLM
    from keras_transformer.language.chat import Chat
    from keras_transformer.language.rewarder import Rewarder
    from keras_transformer.losses import LabelSmoothedCrossentropy
    from keras_transformer.metrics import MaskedAccuracy, Perplexity
    from keras_transformer.models import Transformer
    from keras_transformer.optimizers import WarmupSchedule, adam
    from keras_transformer.pretrained import load_pretrained
    from keras_transformer.saved.adapter_sets import Adapters
    from keras_transformer.speech.synthesizer import Synthesizer
    from keras_transformer.speech.transcriber import Transcriber
    from keras_transformer.tasks.image_classifier import ImageClassifier
    from keras_transformer.tasks.image_embedder import ImageEmbedder
    from keras_transformer.tasks.learned_metric import LearnedMetric
    from keras_transformer.tasks.mask_filler import MaskFiller
    from keras_transformer.tasks.parser import Parser
    from keras_transformer.tasks.question_answerer import QuestionAnswerer
    from keras_transformer.tasks.text_classifier import TextClassifier
    from keras_transformer.tasks.text_embedder import TextEmbedder
    from keras_transformer.tasks.text_scorer import TextScorer
    from keras_transformer.tasks.token_regressor import TokenRegressor
    from keras_transformer.tasks.token_tagger import TokenTagger
    from keras_transformer.text import SentencePieceTokenizer, load_tokenizer
    from keras_transformer.text.glossary import Glossary
    from keras_transformer.translate.engines.engine import Hypothesis
    from keras_transformer.translate.ensemble import ensemble
    from keras_transformer.translate.translator import Translator

__version__ = "0.1.0"

prepare()
register_with_keras()

# Imported on first access: a process that only makes batches does not need Keras.
_HOMES = {
    "Adapters": "saved.adapter_sets",
    "CausalLM": "language.causal_lm",
    "Chat": "language.chat",
    "TransformerConfig": "config",
    "Glossary": "text.glossary",
    "ImageClassifier": "tasks.image_classifier",
    "ImageEmbedder": "tasks.image_embedder",
    "LabelSmoothedCrossentropy": "losses",
    "LearnedMetric": "tasks.learned_metric",
    "MaskFiller": "tasks.mask_filler",
    "MaskedAccuracy": "metrics",
    "Parser": "tasks.parser",
    "Perplexity": "metrics",
    "Rewarder": "language.rewarder",
    "Transformer": "models",
    "WarmupSchedule": "optimizers",
    "adam": "optimizers",
    "distribute": "distribution",
    "ensemble": "translate.ensemble",
    "SentencePieceTokenizer": "text",
    "load_tokenizer": "text",
    "QuestionAnswerer": "tasks.question_answerer",
    "Synthesizer": "speech.synthesizer",
    "TextClassifier": "tasks.text_classifier",
    "TextEmbedder": "tasks.text_embedder",
    "TextScorer": "tasks.text_scorer",
    "TokenRegressor": "tasks.token_regressor",
    "TokenTagger": "tasks.token_tagger",
    "Transcriber": "speech.transcriber",
    "Hypothesis": "translate.engines.engine",
    "Translator": "translate.translator",
    "load_pretrained": "pretrained",
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
    "LearnedMetric",
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
    "TokenRegressor",
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


__getattr__ = imported_on_access(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
