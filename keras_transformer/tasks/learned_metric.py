"""The `LearnedMetric`, which scores translations as people would: COMET, CometKiwi, MetricX."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.config import require
from keras_transformer.models.metric_model import MetricModel
from keras_transformer.running.batches import search_batches
from keras_transformer.running.inputs import require_pieces
from keras_transformer.running.runner import Runner
from keras_transformer.saved.kinds import kind_of
from keras_transformer.tasks.encoder_task import EncoderTask
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.text.tokenizer import checked_texts

ROWS = 4096  # scores that are computed at once from vectors


class LearnedMetric(EncoderTask):
    """A metric that was trained on people's judgements of translations.

    ```python
    metric = LearnedMetric.load("saved_models/wmt22-comet-da")
    print(metric.score(["It rains."], ["Es regnet."], ["Es regnet."]).mean())
    ```

    Texts are sorted by length and processed in batches of a token budget. Each distinct text is
    encoded once; if the metric joins the texts, each distinct combination.

    Args:
        model: A `MetricModel`.
        tokenizer: Tokenizer that the model was trained with.

    Raises:
        ValueError: If the tokenizer has more pieces than the model.
    """

    kind = kind_of("LearnedMetric")
    families = (MetricModel,)

    def __init__(self, model: MetricModel, tokenizer: TextTokenizer):
        require_pieces(tokenizer, model.config)
        self.model, self.tokenizer = model, tokenizer  # type: ignore[assignment]  # no encoder
        self.config: Any = model.config
        # COMET cuts texts to two tokens less than its encoder could read.
        self.max_length = self.config.max_length - 2 * (self.config.family != "T5")
        self._runner = Runner()

    @property
    def needs_reference(self) -> bool:
        """Whether the metric cannot score a translation without a reference."""
        config = self.config
        return "reference" in config.segments and not (
            config.joined and "source" in config.segments
        )

    @property
    def sign(self) -> int:
        """1 if higher scores are better, -1 if lower scores are, as of MetricX."""
        return -1 if self.config.lower_is_better else 1

    def score(
        self,
        sources: Sequence[str],
        translations: Sequence[str],
        references: Sequence[str] | None = None,
        *,
        tokens_per_batch: int = 8192,
    ) -> np.ndarray:
        """Return the score of each translation: (n,), float32.

        Args:
            sources: Source texts.
            translations: A translation of each.
            references: A reference translation of each; None: there are none. A metric that reads
                no reference ignores them.
            tokens_per_batch: Maximum tokens in a batch, padding included. Longer texts than the
                model's are cut, with a warning.

        Raises:
            ValueError: If an argument is out of range, the numbers of texts differ, or the metric
                needs references and there are none.
        """
        known = self.config.segments
        if references is None:
            accepted = "given: the metric compares translations with them"
            require(not self.needs_reference, "references", references, accepted)
            known = tuple(name for name in known if name != "reference")
        texts: dict[str, Sequence[str]] = dict(
            translation=checked_texts(translations, "translations"),
            source=checked_texts(sources, "sources"),
        )
        if references is not None:
            texts["reference"] = checked_texts(references, "references")
        count = len(texts["translation"])
        for name, some in texts.items():
            require(len(some) == count, f"the number of {name}s", len(some), f"{count}")
        texts = {name: texts[name] for name in known}
        if not count:
            return np.zeros(0, "float32")
        if self.config.joined:
            rows = self._joined(texts)
            scores = np.reshape(self._each(rows, tokens_per_batch), (-1, count))
            return scores.mean(axis=0, dtype="float32")
        return self._compared(texts, tokens_per_batch)

    def _joined(self, texts):
        """Return the ids of the sequences that score each translation; several times, of UniTE.

        With source and reference, a UniTE's score is the mean of three.
        """
        if self.config.family == "T5":
            names = dict(source="source", candidate="translation", reference="reference")
            prompts = [f" {name}: " for name, segment in names.items() if segment in texts]
            columns = [texts[segment] for segment in names.values() if segment in texts]
            lines = [
                "".join(x + y for x, y in zip(prompts, row, strict=True))[1:]
                for row in zip(*columns, strict=True)
            ]
            return [ids[:-1] for ids in self._distinct(lines, self._ids)]  # without EOS
        encoded = {name: self._distinct(rows, self._ids) for name, rows in texts.items()}
        translation, *others = encoded.values()
        passes = [[x] for x in others] + ([others] if len(others) > 1 else [])
        limit = self.config.max_length
        return [
            [*first, *(i for ids in rest for i in (ids[-1], *ids[1:]))][:limit]
            for chosen in passes
            for first, *rest in zip(translation, *chosen, strict=True)
        ]

    def _ids(self, texts):
        return self._encoded(texts, strict=False)

    def _each(self, rows: Sequence[Sequence[int]], tokens_per_batch: int) -> list[Any]:
        """Return the result of `function` for rows of ids, each distinct one computed once."""
        return self._distinct(
            list(map(tuple, rows)), lambda some: self._run(some, tokens_per_batch)
        )

    @staticmethod
    def _distinct(rows: Sequence[Hashable], function: Callable) -> list[Any]:
        """Return the results of a function of lists, called with the distinct ones of these."""
        places = {row: i for i, row in enumerate(dict.fromkeys(rows))}
        results = function(list(places))
        return [results[places[row]] for row in rows]

    def _compared(self, texts, tokens_per_batch):
        """Return the scores (n,) of texts that are encoded alone."""
        distinct = dict.fromkeys(itertools.chain.from_iterable(texts.values()))
        places = {text: i for i, text in enumerate(distinct)}
        vectors = np.stack(self._run(self._ids(list(places)), tokens_per_batch))
        indices = {name: np.array([places[x] for x in rows]) for name, rows in texts.items()}
        scores = np.zeros(len(indices["translation"]), "float32")
        for chosen, count, _ in search_batches([1] * len(scores), ROWS, 1, COMPILES_EACH_SHAPE):
            filled = np.resize(chosen, count)
            rows = {f"{name}_ids": vectors[places[filled]] for name, places in indices.items()}
            (values,) = self._runner.arrays(self.model, "scores", self._estimate, [rows])
            scores[chosen] = values[: len(chosen), 0]
        return scores

    def _estimate(self):
        return lambda vectors: ops.cast(self.model.estimate(vectors), "float32")

    def function(self):
        if self.config.joined:
            return lambda inputs: ops.cast(
                self.model({"token_ids": inputs["token_ids"]}), "float32"
            )
        return lambda inputs: ops.cast(self.model.vector(inputs["token_ids"]), "float32")
