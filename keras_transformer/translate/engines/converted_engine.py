"""Base class of engines that compute with a converted copy of the model."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.translate import engines
from keras_transformer.translate.engines.carried import Carried
from keras_transformer.translate.engines.engine import Hypothesis
from keras_transformer.translate.protection import Numbers, search_protected, with_all_numbers

if TYPE_CHECKING:
    from keras_transformer.models import EncoderDecoder
    from keras_transformer.translate.engines.keras_engine import KerasEngine


class ConvertedEngine(abc.ABC):
    """Base class of engines that convert a saved model once, see `conversion_cache`.

    The Keras model is loaded only if it is needed: as the attribute `model`, and for texts whose
    translations lack a number, with `protect`.

    Attributes:
        carried: The search options that it accepts.
        config: The model's config, set by subclasses.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.
        precision: See `Translator.load`.
    """

    carried: Carried
    config: Any

    def __init__(
        self, folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer, precision: str | None
    ):
        self._saved = folder, saved, tokenizer, precision

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call, see `Carried.options`."""
        return self.carried.options(given, accepted, defaults, **others)

    @property
    def model(self) -> EncoderDecoder:
        """The Keras model, loaded when it is first needed."""
        return self.keras_engine.model

    @functools.cached_property
    def keras_engine(self) -> KerasEngine:
        """The engine that runs the Keras model, loaded when it is first needed."""
        return engines.KerasEngine.load(*self._saved)

    def search(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first; an empty text gets an empty hypothesis.

        Raises:
            ValueError: If the request has an option that this engine does not accept, or an option
                is out of its range; or if the model gives scores that are not finite.
        """
        self.carried.check_request(request)
        if not search.protect:
            return self.hypotheses(tokenizer, request, search)
        search = dataclasses.replace(search, protect=False)

        def find(part: Request, numbers: Sequence[Numbers]) -> list[list[Hypothesis]]:
            results = self.search(tokenizer, part, search)
            return with_all_numbers(
                lambda: self.keras_engine, tokenizer, part, search, numbers, results
            )

        return search_protected(find, tokenizer, self.config.max_length, request)

    @abc.abstractmethod
    def hypotheses(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the result of `search` without protected spans."""
