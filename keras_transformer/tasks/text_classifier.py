"""The `TextClassifier`, which finds the labels of texts or pairs of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Self

from keras_transformer.config import require, require_whole
from keras_transformer.data.biology import overlapping_words
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.models.problems import problem_of
from keras_transformer.models.transformer_classifier import TransformerClassifier
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.tasks.labels import (
    Label,
    Value,
    activated,
    check_threshold,
    in_a_line,
    labelled,
)
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts


class TextClassifier(EncoderTask):
    """A text classifier that `training.text_classification` or `import` saved.

    ```python
    classifier = TextClassifier.load("saved_models/sentiment")
    (labels,) = classifier.classify(["A gripping film."])
    print(labels[0].label, labels[0].probability)
    ```

    The `problem_type` of the model's config says what its outputs mean: a text has exactly one of
    the labels, any number of the labels, or a value for each label (regression).

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with the head "sequence_classification", or a `TransformerClassifier`.
        tokenizer: Tokenizer that the model was trained with.
        letters_per_word: For models of sequences without spaces, such as DNA: each text is split
            into overlapping words of this many letters (Ji et al. 2021). None: texts are read as
            they are.

    Raises:
        ValueError: If the model has another head, the tokenizer has more pieces than the model, or
            `letters_per_word` is out of range.
    """

    kind = kind_of("TextClassifier")
    families = (EncoderOnly, TransformerClassifier)

    def __init__(
        self,
        model: EncoderOnly | TransformerClassifier,
        tokenizer: TextTokenizer,
        letters_per_word: int | None = None,
    ):
        super().__init__(model, tokenizer)
        if letters_per_word is not None:
            require_whole("letters_per_word", letters_per_word, 1)
        self.letters_per_word = letters_per_word

    def classify(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        threshold: float | None = None,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Label] | list[Value]]:
        """Return the labels of each text with their probabilities, the most probable first.

        If the model is a regression, return a `Value` for each label instead, in the order of the
        model's labels.

        Args:
            texts: Texts; or pairs of texts, such as a premise and a hypothesis, for a model whose
                `config.takes_pairs` is true, such as a BERT, a RoBERTa or a BART. If a pair is too
                long, its longer text is cut.
            threshold: Labels with a lower probability are left out. None: 0.5 if there are several
                labels and a text may have any number of them, else 0.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, a text is neither a string nor a pair, or
                the model does not take pairs.
        """
        check_threshold(threshold, self.problem)
        if isinstance(texts, str | bytes) or all(isinstance(x, str) for x in texts):
            texts = checked_texts(texts)  # type: ignore[arg-type]  # no pairs
            size = self.letters_per_word
            read = [overlapping_words(x, size) for x in texts] if size else texts
            ids, types = self._encoded(read, strict), None
        else:
            ids, types = self._pairs(texts, strict)
        names = self.model.config.labels
        rows = self._run(ids, tokens_per_batch, types)
        return [labelled(names, row, self.problem, threshold) for row in rows]

    @property
    def problem(self) -> str:
        """The meaning of the model's outputs, one of `models.problems.PROBLEM_TYPES`."""
        return problem_of(self.model.config.problem_type, len(self.model.config.labels))

    def function(self):
        return lambda inputs: activated(self.model(inputs), self.problem)

    def in_words(self, found: list[Label] | list[Value]) -> str:
        """Return the labels of a text as a line of text; see `labels.in_a_line`."""
        return in_a_line(found, self.problem)

    def _facts(self):
        size = self.letters_per_word
        return {} if size is None else {"letters_per_word": size}

    @classmethod
    def of(cls, folder: str | os.PathLike, model: EncoderOnly, tokenizer: TextTokenizer) -> Self:
        """Make the classifier from a model, a tokenizer and the `config.json` of `folder`."""
        return cls(model, tokenizer, read_config(folder, cls.kind.what).get("letters_per_word"))

    def _pairs(self, pairs, strict):
        for i, pair in enumerate(pairs):
            is_pair = isinstance(pair, tuple | list) and len(pair) == 2
            is_pair = is_pair and all(isinstance(x, str) for x in pair)
            require(is_pair, f"texts[{i}]", pair, "a pair of strings, if another text is no string")
        only = "strings, not pairs: the model reads words of so many letters"
        require(self.letters_per_word is None, "texts", pairs[0], only)
        return self._encoded_pairs(pairs, strict)
