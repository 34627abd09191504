"""The engine "auto": for each request the engine that is expected to answer first."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.translate import engines
from keras_transformer.translate.engines.carried import CTRANSLATE2
from keras_transformer.translate.engines.ctranslate2_engine import CTranslate2Engine
from keras_transformer.translate.engines.engine import Engine, Hypothesis

if TYPE_CHECKING:
    from keras_transformer.models import EncoderDecoder
    from keras_transformer.translate.engines.keras_engine import KerasEngine

NAME = "auto"
# From this number of texts on, the Keras model is used: its longer start no longer matters.
MANY = 1000

log = logging.getLogger("keras_transformer.engine")


class AutoEngine:
    """An engine that leaves each request to CTranslate2 or to the Keras model.

    On a CPU, CTranslate2 translates few texts several times as fast, and starts without Keras. The
    Keras model is used for 1,000 texts or more, for options that CTranslate2 does not accept, on a
    GPU, and if CTranslate2 is missing or cannot represent the model. It is loaded when it is first
    needed. Both give the same translations. A choice that differs from the last one is logged.

    Args:
        folder: Folder of a saved translator.
        saved: Its `config.json`.
        tokenizer: Its tokenizer.
        precision: See `Translator.load`. CTranslate2 is used only with "float32" or None.
    """

    def __init__(
        self, folder: Path, saved: Mapping[str, Any], tokenizer: Tokenizer, precision: str | None
    ):
        self._arguments = folder, saved, tokenizer, precision
        self._last: tuple[str, str] | None = None

    @functools.cached_property
    def _keras(self) -> KerasEngine:
        return engines.KerasEngine.load(*self._arguments)

    @functools.cached_property
    def _quick(self) -> CTranslate2Engine | str:
        """CTranslate2's engine, or why it is not used for this model on this machine."""
        *_, precision = self._arguments
        if precision not in (None, "float32"):
            return f"precision {precision}"
        try:
            import ctranslate2

            if ctranslate2.get_cuda_device_count():
                return "a GPU"
            return CTranslate2Engine(*self._arguments)
        except ImportError:
            return "ctranslate2 is not installed"
        except ValueError as error:
            return str(error)

    @property
    def config(self) -> Any:
        """The model's config."""
        return self._keras.config if isinstance(self._quick, str) else self._quick.config

    @property
    def model(self) -> EncoderDecoder:
        """The Keras model."""
        return self._keras.model

    @property
    def shortlist(self) -> Any:
        """The shortlist of the folder, or None."""
        return self._keras.shortlist

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call, see `Search.of`."""
        return Search.of(given, accepted, defaults, **others)

    def choose(self, request: Request, search: Search) -> Engine:
        """Return the engine for a request; log it if it or its reason differs from the last."""
        reason = self._reason_for_keras(request, search)
        choice = ("keras", reason) if reason else ("ctranslate2", f"fewer than {MANY} texts")
        if choice != self._last:
            self._last = choice
            log.info("engine %s: %s", *choice)
        return self._keras if reason or isinstance(self._quick, str) else self._quick

    def _reason_for_keras(self, request, search):
        """Return why a request is left to the Keras model; None if it is not."""
        if isinstance(self._quick, str):
            return self._quick
        if len(request.texts) >= MANY:
            return f"{MANY} texts or more"
        try:
            CTRANSLATE2.check_request(request)
            CTRANSLATE2.check(dataclasses.asdict(search))
        except ValueError as error:
            return str(error)
        return None

    def search(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first; an empty text gets an empty one."""
        return self.choose(request, search).search(tokenizer, request, search)

    def score(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        targets: Sequence[str],
        tokens_per_batch: int,
    ) -> list[float]:
        """Return log p(target | source) of each pair, see `running.scoring.score_pairs`."""
        engine = self.choose(Request(sources), Search())
        return engine.score(tokenizer, sources, targets, tokens_per_batch)
