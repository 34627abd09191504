"""Classes of texts or of pairs of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keras_transformer.config import require
from keras_transformer.inference.encoder_task import EncoderTask
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts


@dataclass(frozen=True)
class Label:
    """A class and its probability in [0, 1]."""

    label: str
    probability: float


class TextClassifier(EncoderTask):
    """Finds the class of each text with what `training.text_classification` or `import` saved.

    ```python
    classifier = TextClassifier.load("saved_models/sentiment")
    (labels,) = classifier.classify(["A gripping film."])
    print(labels[0].label, labels[0].probability)
    ```

    Texts are sorted by length and processed in batches of a token budget. Padding is masked, so
    the result for a text does not depend on the others in its batch.

    Args:
        model: Encoder with the head "sequence_classification" and two labels or more.
        tokenizer: Tokenizer that the model was trained with.

    Raises:
        ValueError: If the model has another head or only one label, or the tokenizer has more
            pieces than the model.
    """

    what, head, task = "text classifier", "sequence_classification", "text_classification"

    def __init__(self, model: EncoderOnly, tokenizer: TextTokenizer):
        super().__init__(model, tokenizer)
        labels = model.config.labels
        require(len(labels) > 1, "the model's labels", labels, "two or more")

    def classify(
        self,
        texts: Sequence[str | tuple[str, str]],
        *,
        tokens_per_batch: int = 8192,
        strict: bool = False,
    ) -> list[list[Label]]:
        """Return all labels of each text with their probabilities, the most probable first.

        Args:
            texts: Texts; or pairs of texts, such as a premise and a hypothesis, for a model with
                two token types, a RoBERTa or a DeBERTa. Of a pair only the second text is cut.
            tokens_per_batch: Maximum tokens in a batch, padding included.
            strict: Whether a text that is too long raises ValueError; else it is cut with a
                warning.

        Raises:
            ValueError: If an argument is out of range, a text is neither a string nor a pair, or
                the model does not take pairs.
        """
        if isinstance(texts, str | bytes) or all(isinstance(x, str) for x in texts):
            texts = checked_texts(texts)  # type: ignore[arg-type]
            encoded = self.tokenizer.encode(texts)
            ids = [self._cut(row, x, strict) for row, x in zip(encoded, texts, strict=True)]
            types = None
        else:
            ids, types = self._pairs(texts, strict)
        names = self.model.config.labels
        return [
            [Label(names[i], float(row[i])) for i in (-row).argsort(kind="stable")]
            for row in self._run(ids, tokens_per_batch, types)
        ]

    def _pairs(self, pairs, strict):
        config = self.model.config
        for i, pair in enumerate(pairs):
            fits = isinstance(pair, tuple | list) and len(pair) == 2
            fits = fits and all(isinstance(x, str) for x in pair)
            require(fits, f"texts[{i}]", pair, "a pair of strings, if another text is no string")
        only = "strings, not pairs: the model has one token type"
        require(config.takes_pairs, "texts", pairs[0], only)
        found = self.tokenizer.encode_pairs(pairs, 1 << 30)
        for i, (ids, *_) in enumerate(found):
            if len(ids) > config.max_length:
                self._cut(ids, pairs[i], strict)
                found[i] = self.tokenizer.encode_pairs([pairs[i]], config.max_length)[0]
        return [x[0] for x in found], [x[1] for x in found]
