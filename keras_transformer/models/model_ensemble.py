"""Several translation models that search as one."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from keras_transformer.backend import quick
from keras_transformer.config import require
from keras_transformer.models.encoder_decoder import EncoderDecoder

# Fields of the configs that must be equal.
SAME = ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_ids")


class Ensemble:
    """Models whose log-probabilities are averaged at each step (Hansen and Salamon 1990).

    It searches and scores like one model, with the geometric mean of the distributions, normalized.
    It is not trained.

    Args:
        models: The models, which may differ in family and sizes.

    Raises:
        ValueError: If there are none, or vocabulary sizes or special ids differ.
    """

    source_name = EncoderDecoder.source_name

    def __init__(self, models: Sequence[EncoderDecoder]):
        require(len(models) > 0, "models", models, "one or more")
        self.models = tuple(models)
        first = self.models[0].config
        for model in self.models:
            for name in SAME:
                value, expected = (getattr(x, name) for x in (model.config, first))
                require(
                    value == expected, f"{name} of a model", value, f"{expected}, as of the first"
                )
        shortest = min(model.config.max_length for model in self.models)
        self.config = dataclasses.replace(first, max_length=shortest)

    @property
    def variables(self) -> list[Any]:
        """The variables of all models."""
        return [variable for model in self.models for variable in model.variables]

    def __call__(self, inputs: dict[str, Any]) -> Any:
        """Return the mean of the log-probabilities (B, T, V), in place of logits."""
        return _mean_of_logs([model(inputs) for model in self.models])

    def target_length(self, source_length: Any) -> Any:
        """Return the length that a search extends: the source's, as in `EncoderDecoder`."""
        return source_length

    def prefill(self, *arguments: Any, **options: Any) -> tuple[Any, dict[str, Any], Callable]:
        """Process a source; the arguments and results are those of `EncoderDecoder.prefill`."""
        prefills = [model.prefill(*arguments, **options) for model in self.models]
        steps = [step for _, _, step in prefills]

        def step(token_ids_BK, state, index, ancestors_BKM=None):
            results = [
                model_step(token_ids_BK, state[str(i)], index, ancestors_BKM)
                for i, model_step in enumerate(steps)
            ]
            logits_BKV = _mean_of_logs([logits for logits, _ in results])
            return logits_BKV, {str(i): state for i, (_, state) in enumerate(results)}

        state = {str(i): state for i, (_, state, _) in enumerate(prefills)}
        return _mean_of_logs([logits for logits, _, _ in prefills]), state, step


def _mean_of_logs(logits):
    logs = []
    for logits_BKV in logits:
        logits_BKV = quick.cast(logits_BKV, "float32")
        logs.append(logits_BKV - quick.logsumexp(logits_BKV, axis=-1, keepdims=True))
    return functools.reduce(operator.add, logs) / len(logs)
