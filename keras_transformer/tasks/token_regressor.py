"""The `TokenRegressor`, which predicts a number for each word of a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keras import ops

from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.word_task import WordTask


@dataclass(frozen=True)
class WordValue:
    """A word with the number that is predicted for it.

    Args:
        text: The word: `text[start:end]` of the whole text.
        start: Index of its first character in the text.
        end: Index of the character after its last.
        value: The predicted number, any real number.
    """

    text: str
    start: int
    end: int
    value: float


class TokenRegressor(WordTask):
    """A predictor of a number for each word, such as its reading time, or a residue's exposure.

    ```python
    regressor = TokenRegressor.load("saved_models/reading-times")
    (values,) = regressor.regress(["Ann Smith lives in Rome."])
    print(values[0].text, values[0].value)
    ```

    Its model has the head "token_classification" with one label, and the `problem_type`
    "regression"; `training.token_regression` saves such models. Arguments: see `WordTask`.
    """

    kind = kind_of("TokenRegressor")

    def regress(
        self, texts: Sequence[str], *, tokens_per_batch: int = 8192, strict: bool = False
    ) -> list[list[WordValue]]:
        """Return the predicted number of each word of each text, in order.

        Args:
            texts: Texts, or proteins for an ESM; split into words as in `TokenTagger.tag`.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning, and the words after the cut are left out.

        Raises:
            ValueError: If an argument is out of range, or a text is too long and `strict` is set.
        """
        places, results = self._of_texts(texts, tokens_per_batch, strict)
        return [
            [
                WordValue(text[start:end], start, end, float(row[0]))
                for (start, end), row in zip(spans, rows, strict=True)
                if row is not None
            ]
            for text, spans, rows in zip(texts, places, results, strict=True)
        ]

    def regress_words(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[float]]:
        """Return the predicted number of each word of sentences that are already split.

        Words are encoded as in training: each with a space before it, if `spaced_words` is true.

        Args:
            sentences: The words of each sentence.
            tokens_per_batch, strict: See `regress`; words after a cut get NaN.

        Raises:
            ValueError: See `regress`.
        """
        rows = self._of_words(sentences, tokens_per_batch, strict)
        return [[math.nan if x is None else float(x[0]) for x in row] for row in rows]

    def in_words(self, found: Sequence[WordValue]) -> str:
        """Return the numbers of a text as a line of text: word=number, separated by tabs."""
        return "\t".join(f"{x.text}={x.value:.6g}" for x in found)

    def function(self):
        return lambda inputs: ops.cast(self.model(inputs), "float32")
