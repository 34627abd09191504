"""Complete models: functional graphs, each built from one frozen config.

Importing this package registers all classes that a saved model can contain, including optimizers
and metrics, so that `keras.saving.load_model` finds them.
"""

from keras_transformer import metrics, optimizers  # noqa: F401
from keras_transformer.config import T5Config
from keras_transformer.models.bert import BERT, BERTConfig
from keras_transformer.models.deberta import DeBERTa, DeBERTaConfig
from keras_transformer.models.decoder_only import DecoderOnly
from keras_transformer.models.encoder_decoder import EncoderDecoder
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.models.esm import ESM, ESMConfig
from keras_transformer.models.gemma import Gemma, GemmaConfig
from keras_transformer.models.gpt import GPT, GPTConfig
from keras_transformer.models.llama import LLaMA, LLaMAConfig
from keras_transformer.models.lora import enable_lora, merged
from keras_transformer.models.metric_model import MetricConfig, MetricModel
from keras_transformer.models.model_ensemble import Ensemble
from keras_transformer.models.modernbert import ModernBERT, ModernBERTConfig
from keras_transformer.models.prompted import Prompted
from keras_transformer.models.quantized import narrowed, widened
from keras_transformer.models.remat import enable_remat
from keras_transformer.models.reward import RewardConfig, RewardModel
from keras_transformer.models.speech_to_text import Speech, SpeechConfig
from keras_transformer.models.t5 import T5, T5Encoder, T5EncoderConfig
from keras_transformer.models.t5gemma import T5Gemma, T5GemmaConfig
from keras_transformer.models.text_to_speech import TextToSpeech, TextToSpeechConfig
from keras_transformer.models.transformer import Transformer
from keras_transformer.models.transformer_classifier import (
    TransformerClassifier,
    TransformerClassifierConfig,
)
from keras_transformer.models.vit import ViT, ViTConfig, resized, with_classes

__all__ = [
    "BERT",
    "ESM",
    "GPT",
    "T5",
    "BERTConfig",
    "DeBERTa",
    "DeBERTaConfig",
    "DecoderOnly",
    "ESMConfig",
    "EncoderDecoder",
    "EncoderOnly",
    "Ensemble",
    "GPTConfig",
    "Gemma",
    "GemmaConfig",
    "LLaMA",
    "LLaMAConfig",
    "MetricConfig",
    "MetricModel",
    "ModernBERT",
    "ModernBERTConfig",
    "Prompted",
    "RewardConfig",
    "RewardModel",
    "Speech",
    "SpeechConfig",
    "T5Config",
    "T5Encoder",
    "T5EncoderConfig",
    "T5Gemma",
    "T5GemmaConfig",
    "TextToSpeech",
    "TextToSpeechConfig",
    "Transformer",
    "TransformerClassifier",
    "TransformerClassifierConfig",
    "ViT",
    "ViTConfig",
    "enable_lora",
    "enable_remat",
    "merged",
    "narrowed",
    "resized",
    "widened",
    "with_classes",
]
