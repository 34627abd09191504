"""Speech recognition (`Transcriber`) and speech synthesis (`Synthesizer`).

Names that need Keras are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access

if TYPE_CHECKING:
    from keras_transformer.speech.sounds import samples_of

__all__ = ["samples_of"]

__getattr__ = imported_on_access(__name__, {"samples_of": "sounds"})
