"""The interface of all engines of a `Translator`, and the hypotheses that they find."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer

if TYPE_CHECKING:
    from keras_transformer.models import EncoderDecoder


@dataclass(frozen=True)
class Hypothesis:
    """A translation and the score that ranks it; higher is better.

    From a search, the score is the sum of the tokens' log-probabilities divided by the length
    penalty; from a `Reranker`, the weighted sum of features.
    """

    text: str
    score: float


class Engine(Protocol):
    """Interface of the engines of a `Translator`."""

    @property
    def config(self) -> Any:
        """The model's config."""
        ...

    @property
    def model(self) -> EncoderDecoder:
        """The Keras model."""
        ...

    def options(
        self,
        given: Mapping[str, Any],
        accepted: Collection[str],
        defaults: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Search:
        """Return the search options of a call, see `Search.of`."""
        ...

    def search(
        self, tokenizer: Tokenizer, request: Request, search: Search
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first; an empty text gets an empty one."""
        ...

    def score(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[str],
        targets: Sequence[str],
        tokens_per_batch: int,
    ) -> list[float]:
        """Return log p(target | source) of each pair, see `running.scoring.score_pairs`."""
        ...
