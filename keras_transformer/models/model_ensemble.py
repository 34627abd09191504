"""Several translation models that search as one."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from keras import ops

from keras_transformer.backend import quick
from keras_transformer.config import is_number, require
from keras_transformer.models.encoder_decoder import EncoderDecoder

_NEVER, _LEAST = -1e9, 1e-30
# Fields of the configs that must be equal.
SAME = ("source_vocab_size", "target_vocab_size", "pad_id", "bos_id", "eos_ids")


class Ensemble:
    """Models whose log-probabilities are averaged at each step (Hansen and Salamon 1990).

    It searches and scores like one model, with the geometric mean of the distributions. It cannot
    be trained.

    Args:
        models: The models, which may differ in family and sizes.
        weights: Weights of the models in the mean, above 0; None: equal ones.
        normalized: Whether the mean is normalized to a distribution. False: a score is the weighted
            mean of the models' scores. (Marian's is their weighted sum.)

    Raises:
        ValueError: If `models` is empty, vocabulary sizes or special ids differ, or `weights` are
            not one number above 0 for each model.
    """

    source_name = EncoderDecoder.source_name

    def __init__(
        self,
        models: Sequence[EncoderDecoder],
        weights: Sequence[float] | None = None,
        normalized: bool = True,
    ):
        require(len(models) > 0, "models", models, "one or more")
        weights = [1.0] * len(models) if weights is None else list(weights)
        are_weights = len(weights) == len(models) and all(is_number(x) and x > 0 for x in weights)
        accepted = f"a number above 0 for each of {len(models)} models"
        require(are_weights, "weights", weights, accepted)
        self.weights = tuple(x / sum(weights) for x in weights)
        self.normalized = normalized
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
        return self._mean([model(inputs) for model in self.models])

    def target_length(self, source_length: Any) -> Any:
        """Return the length that a search extends: the source's, as in `EncoderDecoder`."""
        return source_length

    def first_position(self, source_length: Any) -> Any:
        """Return the position of the first token of a translation, as in its models."""
        return self.models[0].first_position(source_length)

    def prefill(self, *arguments: Any, **options: Any) -> tuple[Any, dict[str, Any], Callable]:
        """Process a source; the arguments and results are those of `EncoderDecoder.prefill`."""
        prefills = [model.prefill(*arguments, **options) for model in self.models]
        steps = [step for _, _, step in prefills]
        # In a list of ids, padding is the first.
        pad_place = None if options.get("listed") is None else 0

        def step(token_ids_BK, state, index, ancestors_BKM=None):
            results = [
                model_step(token_ids_BK, state[str(i)], index, ancestors_BKM)
                for i, model_step in enumerate(steps)
            ]
            logits_BKV = self._mean([logits for logits, _ in results], pad_place)
            return logits_BKV, {str(i): state for i, (_, state) in enumerate(results)}

        state = {str(i): state for i, (_, state, _) in enumerate(prefills)}
        return self._mean([logits for logits, _, _ in prefills], pad_place), state, step

    def _mean(self, logits, pad_place=None):
        """Return the mean of the models' log-probabilities.

        If it is not normalized, padding, which is never generated, gets the rest of the
        probability: the search then adds the means as they are.
        """
        logs = []
        for weight, logits_V in zip(self.weights, logits, strict=True):
            logits_V = quick.cast(logits_V, "float32")
            logs.append(weight * (logits_V - quick.logsumexp(logits_V, axis=-1, keepdims=True)))
        mean_V = functools.reduce(operator.add, logs)
        if self.normalized:
            return mean_V
        place = self.config.pad_id if pad_place is None else pad_place
        is_pad_V = quick.arange(quick.shape(mean_V)[-1], dtype="int32") == place
        mean_V = quick.where(is_pad_V, _NEVER, mean_V)
        sum_1 = ops.exp(quick.logsumexp(mean_V, axis=-1, keepdims=True))
        return quick.where(is_pad_V, ops.log(ops.maximum(1 - sum_1, _LEAST)), mean_V)
