"""Language models that continue texts or chat, and reward models that score answers.

Names that need Keras are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_transformer.system.lazy import imported_on_access

if TYPE_CHECKING:
    from keras_transformer.language.causal_lm import CausalLM
    from keras_transformer.language.chat import Chat
    from keras_transformer.language.slots import Slots

__all__ = ["CausalLM", "Chat", "Slots"]

__getattr__ = imported_on_access(
    __name__, {"CausalLM": "causal_lm", "Chat": "chat", "Slots": "slots"}
)
