"""Engines of a translator; those that need Keras are imported when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access

if TYPE_CHECKING:
    from keras_transformer.translate.engines.ctranslate2_conversion import convert
    from keras_transformer.translate.engines.inductor_engine import InductorEngine
    from keras_transformer.translate.engines.keras_engine import KerasEngine

__all__ = ["InductorEngine", "KerasEngine", "convert"]

_HOMES = {
    "InductorEngine": "inductor_engine",
    "KerasEngine": "keras_engine",
    "convert": "ctranslate2_conversion",
}

__getattr__ = imported_on_access(__name__, _HOMES)
