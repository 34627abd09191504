"""The `TextScorer`, which scores pairs of texts, and ranks texts by their score with a query."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.models.problems import problem_of
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.tasks.labels import activated
from keras_transformer.tasks.similarity import Match
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts


class TextScorer(EncoderTask):
    """A scorer of pairs of texts: a cross-encoder, such as a reranker (Nogueira and Cho 2019).

    ```python
    scorer = TextScorer.load("saved_models/ms-marco-MiniLM-L6-v2")
    best = scorer.rank("How do I pay?", ["By card.", "It rains."], top_k=1)
    print(best[0].index, best[0].score)
    ```

    The encoder reads both texts as one sequence, whereas a `TextEmbedder` compares their vectors.
    A score is a probability in [0, 1], or any real number if the model is a regression.
    Pairs are sorted by length and processed in batches of a token budget.

    Args:
        model: Encoder with the head "sequence_classification" and one label.
        tokenizer: Tokenizer that the model was trained with.
        max_length: Maximum tokens of a pair; if it has more, its longer text is cut. None: the
            model's `max_length`.

    Raises:
        ValueError: If the model has another head or several labels, the tokenizer has more pieces
            than the model, or `max_length` is out of range.
    """

    kind = kind_of("TextScorer")

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer, max_length: int | None = None):
        super().__init__(model, tokenizer)
        if max_length is not None:
            require_whole("max_length", max_length, 1)
            self.max_length = min(max_length, self.max_length)

    def score(
        self,
        queries: Sequence[str],
        texts: Sequence[str],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> np.ndarray:
        """Return the score of each text with its query: (n,), float32.

        Args:
            queries: First texts of the pairs.
            texts: Second texts, one for each query.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a pair that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, the numbers of texts differ, or the model
                does not take pairs.
        """
        queries, texts = checked_texts(queries, "queries"), checked_texts(texts)
        accepted = f"{len(queries)}, one for each of the queries"
        require(len(texts) == len(queries), "the number of texts", len(texts), accepted)
        ids, types = self._encoded_pairs(list(zip(queries, texts, strict=True)), strict)
        return np.array(self._run(ids, tokens_per_batch, types), "float32")

    def rank(
        self,
        query: str,
        texts: Sequence[str],
        top_k: int | None = None,
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[Match]:
        """Return the texts with the highest scores for a query, best first.

        Args:
            query: The query.
            texts: The texts to rank.
            top_k: Number of texts; None: all.
            tokens_per_batch, strict: See `score`.

        Raises:
            ValueError: See `score`; also if `top_k` is below 1.
        """
        if top_k is not None:
            require_whole("top_k", top_k, 1)
        texts = checked_texts(texts)
        options: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch, strict=strict)
        scores = self.score([query] * len(texts), texts, **options)
        best = (-scores).argsort(kind="stable")[:top_k]
        return [Match(int(i), float(scores[i])) for i in best]

    def _facts(self):
        return {"max_length": self.max_length}

    @classmethod
    def of(cls, folder: str | os.PathLike, model: EncoderOnly, tokenizer: TextTokenizer) -> Self:
        """Make the scorer from a model, a tokenizer and the `config.json` of `folder`."""
        return cls(model, tokenizer, read_config(folder, cls.kind.what).get("max_length"))

    def function(self):
        problem = problem_of(self.model.config.problem_type, 1)
        return lambda inputs: activated(self.model(inputs), problem)[:, 0]
