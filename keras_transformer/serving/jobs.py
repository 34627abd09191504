"""Jobs of a batcher besides plain translation: wishes, estimates, scores, lists, alignments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_transformer.serving.handlers import Links
from keras_transformer.text.word_spans import words


@dataclass(frozen=True)
class _OfPairs:
    """Base class of a batcher's jobs on pairs of a sentence and its translation.

    Args:
        handler: The handler that translated the sentences.
    """

    handler: Any

    def read(self, pairs: Sequence[tuple[str, str]]) -> tuple[Sequence[tuple[str, str]], list[int]]:
        """Return the pairs, and the number of tokens of each source."""
        return pairs, self.handler.read([source for source, _ in pairs])[1]


class Judge(_OfPairs):
    """A job that estimates the quality of each pair."""

    def search(
        self, pairs: Sequence[tuple[str, str]], num_hypotheses: int, tokens_per_batch: int
    ) -> list[float | None]:
        """Return the quality of each pair, in [0, 1]; None: it cannot be estimated."""
        return self.handler.estimate(pairs)


class Scorer(_OfPairs):
    """A job that finds log p(target | source) of each pair."""

    def search(
        self, pairs: Sequence[tuple[str, str]], num_hypotheses: int, tokens_per_batch: int
    ) -> list[float]:
        """Return log p(target | source) of each pair, a sum over the target's tokens and EOS."""
        return self.handler.score(pairs, tokens_per_batch)


@dataclass(frozen=True)
class Wishes:
    """Terms and a style that a request asks for.

    Args:
        glossary: Accepted forms by term; None or empty: no terms.
        style: Style of the translations, such as "formal"; None: the model's usual one.
    """

    glossary: Mapping[str, Sequence[str]] | None = None
    style: str | None = None


NO_WISHES = Wishes()


@dataclass(frozen=True)
class Wished:
    """A job that translates with the terms of a glossary, or in a style.

    Args:
        handler: The handler that translates.
        terms: Each source term, with the accepted forms of its translation.
        style: See `Wishes`.
    """

    handler: Any
    terms: tuple[tuple[str, tuple[str, ...]], ...]
    style: str | None = None

    @classmethod
    def of(cls, handler: Any, wishes: Wishes, texts: Sequence[str]) -> Wished:
        """Return the job with the terms that occur in some texts, perhaps inside a word."""
        normal = " ".join(" ".join(texts).split()).casefold()
        terms = [(term, tuple(forms)) for term, forms in (wishes.glossary or {}).items()]
        terms = [x for x in terms if " ".join(x[0].split()).casefold() in normal]
        return cls(handler, tuple(terms), wishes.style)

    def read(self, texts: Sequence[str]) -> tuple[Sequence[Any], list[int]]:
        """Return the handler's items for `search`, and the number of tokens of each text."""
        return self.handler.read(texts)

    def search(
        self, sources: Sequence[Any], num_hypotheses: int, tokens_per_batch: int
    ) -> list[list[str]]:
        """Return the best translations of each text, best first, as wished."""
        wishes = self.terms, self.style
        return self.handler.search(sources, num_hypotheses, tokens_per_batch, *wishes)


@dataclass(frozen=True)
class Lister:
    """A job that finds the best translations of each text with their scores.

    Args:
        handler: The handler that translates.
    """

    handler: Any

    def read(self, texts: Sequence[str]) -> tuple[Sequence[Any], list[int]]:
        """Return the handler's items for `search`, and the number of tokens of each text."""
        return self.handler.read(texts)

    def search(
        self, sources: Sequence[Any], num_hypotheses: int, tokens_per_batch: int
    ) -> list[list[tuple[str, float]]]:
        """Return (translation, score) pairs of each text, as many as beams, best first."""
        return self.handler.nbest(sources, tokens_per_batch)


class Aligner(_OfPairs):
    """A job that finds the source word of each target word.

    It is a job of the batcher so that aligning a long document does not block other requests.
    """

    def search(
        self, pairs: Sequence[tuple[str, str]], num_hypotheses: int, tokens_per_batch: int
    ) -> list[Links]:
        """Return the index of each target word's source word, per pair; None: it is not aligned."""
        alignments = self.handler.align(pairs) if self.handler.can_attend else [None] * len(pairs)
        return [
            _in_order(words(source), words(target)) if links is None else links
            for (source, target), links in zip(pairs, alignments, strict=True)
        ]


def _in_order(source_words, target_words):
    """Align words by relative position, where the model gives no alignment."""
    pace = len(source_words) / max(len(target_words), 1)
    return [int(j * pace) if source_words else None for j in range(len(target_words))]
