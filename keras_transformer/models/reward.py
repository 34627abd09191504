"""Reward models: a score of an answer to a prompt (Ouyang et al. 2022, section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import keras
from keras import ops

from keras_transformer.layers.basic import Dense
from keras_transformer.models.configured import BasedConfig, ConfiguredModel
from keras_transformer.models.gpt import GPT
from keras_transformer.models.llama import LLaMA
from keras_transformer.models.t5 import T5
from keras_transformer.models.training_step import VocabularyModel
from keras_transformer.models.transformer import Transformer

_BASES: tuple[type[ConfiguredModel], ...] = (GPT, LLaMA, T5, Transformer)
FAMILIES = {x.__name__: x for x in _BASES}


@dataclass(frozen=True)
class RewardConfig(BasedConfig):
    """Config of a `RewardModel`.

    Args:
        family: Class of the base model: "GPT", "LLaMA", "T5" or "Transformer".
        base: Config of the base model, as plain values.

    Raises:
        ValueError: If the family is unknown, or its config refuses a value.
    """

    families = FAMILIES


@keras.saving.register_keras_serializable("keras_transformer")
class RewardModel(ConfiguredModel):
    """A base model with a dense layer that scores an answer by its last hidden state.

    Args:
        config: The model's config.
        dtype: Keras dtype policy; None: the global one.

    Call arguments:
        inputs: Inputs of the base model, with the answer as the target or after its prompt, and
            `last` (B,), int32: position of the answer's last token in the target, or in the only
            sequence.

    Returns:
        Scores (B, 1), any real numbers.
    """

    config_class = RewardConfig

    def __init__(self, config: RewardConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        family: Any = FAMILIES[config.family]
        base = family(config.base_config, dtype=policy)
        inputs = {**base.input, "last": keras.Input((), dtype="int32", name="last")}
        hidden_BTD = base.compute_hidden(base.input)
        last_B11 = ops.expand_dims(inputs["last"], (1, 2))
        state_BD = ops.take_along_axis(hidden_BTD, last_B11, axis=1)[:, 0]
        score = Dense(1, dtype=policy, name="score")
        super().__init__(inputs=inputs, outputs=score(state_BD), **kwargs)
        self.config, self._policy = config, policy
        self.base, self.score = base, score
        if isinstance(base.output_layer, Dense):
            base.output_layer.trainable = False  # nothing depends on it

    @classmethod
    def on(cls, model: VocabularyModel, dtype: Any = None) -> Self:
        """Return a reward model on the weights of a trained model, with a random score layer.

        Raises:
            ValueError: If the model's family is not in `FAMILIES`.
        """
        reward = cls(RewardConfig(type(model).__name__, model.config.to_dict()), dtype=dtype)
        for weight, trained in zip(reward.base.weights, model.weights, strict=True):
            weight.assign(trained)
        return reward
