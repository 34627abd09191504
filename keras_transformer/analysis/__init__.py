"""Analysis of trained models: attention, word alignment, plots, reports of errors.

Names that need Keras are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access

if TYPE_CHECKING:
    from keras_transformer.analysis.alignment import align, attention

__all__ = ["align", "attention"]

__getattr__ = imported_on_access(__name__, {"align": "alignment", "attention": "alignment"})
