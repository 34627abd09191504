"""Let Keras load our classes from files before the modules that define them are imported.

This module imports only the standard library.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

PACKAGE = "keras_transformer"
SERIALIZABLE = {  # by module: its classes with `keras.saving.register_keras_serializable`
    "layers.attention": ("MultiHeadAttention",),
    "layers.audio_frontend": ("AudioEmbedding", "FramePrenet"),
    "layers.basic": ("Bias", "Dense", "LayerNormalization", "RMSNormalization", "SoftCap"),
    "layers.decoder": ("Decoder", "DecoderBlock"),
    "layers.disentangled": ("DisentangledAttention", "DisentangledBlock", "DisentangledEncoder"),
    "layers.embedding": ("PositionalEmbedding",),
    "layers.encoder": ("Encoder", "EncoderBlock"),
    "layers.feed_forward": ("FeedForward",),
    "layers.head_groups": ("FusedDense",),
    "layers.layer": ("ClaimedZeros",),
    "layers.mixture_of_experts": ("MixtureOfExperts",),
    "layers.patches": ("PatchEmbedding",),
    "layers.relative_bias": ("RelativeBias",),
    "layers.residual": ("AddNorm",),
    "layers.rotary": ("Rotary",),
    "layers.ssru": ("SSRU",),
    "layers.token_table": ("TokenTable",),
    "losses": (
        "ContrastiveLoss",
        "LabelSmoothedCrossentropy",
        "MaskedSquaredError",
        "PreferenceLoss",
        "RewardLoss",
    ),
    "metrics": ("MaskedAccuracy", "Perplexity", "PreferenceAccuracy"),
    "models.bert": ("BERT",),
    "models.deberta": ("DeBERTa",),
    "models.esm": ("ESM", "MaskDropout"),
    "models.gemma": ("Gemma",),
    "models.gpt": ("GPT",),
    "models.llama": ("LLaMA",),
    "models.metric_model": ("MetricModel",),
    "models.modernbert": ("ModernBERT",),
    "models.reward": ("RewardModel",),
    "models.speech_to_text": ("Speech",),
    "models.t5": ("T5", "T5Encoder"),
    "models.t5gemma": ("T5Gemma",),
    "models.task_heads": ("Transform",),
    "models.text_to_speech": ("TextToSpeech",),
    "models.transformer": ("Transformer",),
    "models.transformer_classifier": ("TransformerClassifier",),
    "models.vit": ("ViT",),
    "optimizers": ("Adam", "WarmupSchedule"),
}


def register_with_keras() -> None:
    """Register all `SERIALIZABLE` classes with Keras, now or as soon as it is imported.

    Keras finds a registered class by its name, not by its module. A module registers its classes
    when it is imported; until then, stand-in classes are registered, which import the module when
    they are used.
    """
    after_import("keras", _register)


def after_import(name: str, action: Callable[[ModuleType], Any]) -> None:
    """Call a function with a module, now or as soon as the module is imported.

    Args:
        name: Name of the module.
        action: The function.
    """
    if module := sys.modules.get(name):
        action(module)
    elif PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), AfterImport(name, action))


class AfterImport:
    """An import finder that calls a function with a module once it is imported.

    Args:
        name: Name of the module.
        action: Function that is called with the module.
    """

    def __init__(self, name: str, action: Callable[[ModuleType], Any]):
        self._name, self._action = name, action

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module's spec from `PathFinder`, with a loader that then calls the action."""
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_act(module):
            execute(module)
            self._action(module)

        spec.loader.exec_module = execute_and_act  # type: ignore[method-assign]  # of this one object
        return spec


def _register(keras: Any) -> None:
    """Register a stand-in for each of our classes that is not imported yet."""
    known = keras.saving.get_custom_objects()
    for module, names in SERIALIZABLE.items():
        for name in names:
            known.setdefault(f"{PACKAGE}>{name}", _stand_in(module, name))


def _stand_in(module, name):
    """Return a stand-in class, which imports the module of the real class when it is used."""

    def from_config(config, *arguments, **options):
        defined = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
        return defined.from_config(config, *arguments, **options)

    return type(name, (), {"from_config": staticmethod(from_config)})
