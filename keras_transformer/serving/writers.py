"""The language models of a server."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from keras_transformer import language
from keras_transformer.config import require
from keras_transformer.saved.contents import CONFIG, is_saved
from keras_transformer.serving.token_texts import TokenTexts
from keras_transformer.system.files import read_json


@dataclass(frozen=True)
class LanguageModel:
    """A language model that a server has loaded.

    Args:
        name: Name of the model.
        writer: The model with its tokenizer.
        chat: Chat template: `encode(messages)` returns the ids of a prompt, and `ends` are the ids
            that end a reply; None: the model has no chat template.
        loaded: When it was loaded, in seconds since 1970.
    """

    name: str
    writer: language.CausalLM
    chat: language.Chat | None = None
    loaded: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def load(cls, folder: Path, precision: str | None = None) -> LanguageModel:
        """Load a saved language model, with its chat template if it has one.

        Raises:
            ValueError: If the saved search has several beams; see also `CausalLM.load`, `Chat`.
            ImportError: See `CausalLM.load` and `Chat`.
        """
        writer = language.CausalLM.load(folder, precision)
        beams, name = writer.options({}).beam_size, f'beam_size in "search" of {folder / CONFIG}'
        require(beams == 1, name, beams, "1 to be served: replies are made token by token")
        chat = language.Chat(writer) if writer.template else None
        return cls(folder.resolve().name, writer, chat)

    @cached_property
    def names(self) -> TokenTexts:
        """Decoder of the model's tokens one by one."""
        return TokenTexts(self.writer.tokenizer)


def is_language_model(folder: Path) -> bool:
    """Return whether a folder is a saved language model to serve as such.

    A language model with a prompt for translations is served as a translator.

    Raises:
        ValueError: If its `config.json` is broken.
    """
    if not is_saved(folder):
        return False
    config = read_json(folder / CONFIG)
    is_object = isinstance(config, dict)
    return is_object and config.get("task") == "causal_lm" and not config.get("prompt")
