"""Learned metrics of translations: COMET, CometKiwi and MetricX, a score of a translation.

COMET (Rei et al. 2020, section 2; 2022) encodes source, translation and reference alone; a
feed-forward network then compares their vectors. CometKiwi (Rei et al. 2022b), a UniTE (Wan et al.
2022), encodes them joined. MetricX (Juraska et al. 2024) reads them as one text with an mT5, whose
decoder's first state gives the score.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import keras
from keras import ops

from keras_transformer.config import require
from keras_transformer.layers import padding_mask
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.layer import Layer
from keras_transformer.models.bert import BERT
from keras_transformer.models.configured import BasedConfig, ConfiguredModel
from keras_transformer.models.encoder_only import EncoderOnly
from keras_transformer.models.sentence import pool
from keras_transformer.models.t5 import T5

FAMILIES: dict[str, type[ConfiguredModel]] = {"BERT": BERT, "T5": T5}
SEGMENTS = ("translation", "source", "reference")
POOLINGS = ("mean", "cls", "max")
ACTIVATIONS = ("tanh", "sigmoid", "relu")
SHARES = ("softmax", "sparsemax")


@dataclass(frozen=True)
class MetricConfig(BasedConfig):
    """Config of a `MetricModel` (defaults: COMET's estimator with a reference).

    Args:
        family: Class of the base model: "BERT", or "T5" for MetricX.
        base: Config of the base model, as plain values; a BERT's head is not used.
        segments: Texts that the metric reads, of `SEGMENTS`: the translation, and the source or the
            reference or both.
        joined: Whether they are encoded as one sequence; otherwise each text alone.
        layer: Number of the block whose output is pooled, 0 for the embeddings; None: a learned
            mixture of all of them.
        shares: How the mixture's weights become shares: "softmax" or "sparsemax".
        normalized: Whether each state in the mixture is normalized over the whole text.
        pooling: The vector of a text or a sequence: "mean", "cls" or "max" of its states.
        hidden_sizes: Widths of the hidden layers of the feed-forward network.
        activation: Their activation, one of `ACTIVATIONS`.
        final_activation: Activation of the score, one of `ACTIVATIONS`; None: none.
        limits: Minimum and maximum of a score; None: any real number.
        lower_is_better: Whether the score is an amount of errors.

    Raises:
        ValueError: If a value is unknown, or the base's config refuses one.
    """

    families = FAMILIES
    segments: tuple[str, ...] = SEGMENTS
    joined: bool = False
    layer: int | None = None
    shares: str = "softmax"
    normalized: bool = False
    pooling: str = "mean"
    hidden_sizes: tuple[int, ...] = (3072, 1024)
    activation: str = "tanh"
    final_activation: str | None = None
    limits: tuple[float, float] | None = None
    lower_is_better: bool = False

    def __post_init__(self):
        for name in ("segments", "hidden_sizes", "limits"):  # lists, in a saved config
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) else value)
        self._check_choice("shares", SHARES)
        self._check_choice("pooling", POOLINGS)
        self._check_choice("activation", ACTIVATIONS)
        self._check_choice("final_activation", (None, *ACTIVATIONS))
        are_known = self.segments in [SEGMENTS, SEGMENTS[:2], ("translation", "reference")]
        accepted = "translation, then source, reference or both"
        require(are_known, "segments", self.segments, accepted)
        has_source = self.joined or "source" in self.segments
        require(has_source, "segments", self.segments, "with a source, unless they are joined")
        joined = self.joined or self.family != "T5"
        require(joined, "joined", self.joined, "True with a T5")
        if self.layer is not None and self.family == "BERT":
            most = getattr(self.base_config, "num_layers", 0)
            in_range = type(self.layer) is int and 0 <= self.layer <= most
            require(in_range, "layer", self.layer, f"a whole number from 0 to {most}, or None")
        super().__post_init__()


@keras.saving.register_keras_serializable("keras_transformer")
class MetricModel(ConfiguredModel):
    """A functional model from the token ids of the texts to a score.

    Args:
        config: The model's config.
        dtype: Keras dtype policy; None: the global one.

    Call arguments:
        inputs: Dict of int32 ids, padded on the right: `token_ids` (B, T) if the texts are joined,
            otherwise `translation_ids`, `source_ids` and, if it reads one, `reference_ids`.

    Returns:
        Scores (B, 1).
    """

    config_class = MetricConfig

    def __init__(self, config: MetricConfig, dtype: Any = None, **kwargs: Any):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        family: Any = FAMILIES[config.family]
        base = family(config.base_config, dtype=policy)
        vector = _of_decoder(base) if config.family == "T5" else _of_encoder(base, config, policy)
        score = _head(config, policy)
        names = ["token_ids"] if config.joined else [f"{x}_ids" for x in config.segments]
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}

        def estimate(vectors: Mapping[str, Any]) -> Any:
            """Return the score (B, 1) of vectors (B, D), by the names of the inputs."""
            return score(vectors["token_ids"] if config.joined else _compared(**vectors))

        outputs = estimate({name: vector(ids) for name, ids in inputs.items()})
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config, self._policy = config, policy
        self.base, self.vector, self.estimate = base, vector, estimate

    @classmethod
    def on(cls, model: EncoderOnly, config: MetricConfig, dtype: Any = None) -> Self:
        """Return a metric on the weights of a trained encoder, with a random feed-forward network.

        Args:
            model: The encoder, whose config is that in `config.base`, with the head "hidden".
            config: The metric's config.
            dtype: Keras dtype policy; None: the global one.
        """
        metric = cls(config, dtype=dtype)
        for weight, trained in zip(metric.base.weights, model.weights, strict=True):
            weight.assign(trained)
        return metric


class Mixture(Layer):
    """One of an encoder's states h_l, or their mixture gamma sum_l s_l h_l.

    The shares s come from learned numbers (Rei et al. 2020, section 2.2).

    Args:
        encoder: The encoder, built.
        layer, shares, normalized: See `MetricConfig`.

    Call arguments:
        x: (B, T, D), the encoder's input.
        attention_mask: Boolean (B, 1, 1, T), which tokens are no padding.

    Returns:
        (B, T, D).
    """

    def __init__(
        self, encoder: Any, layer: int | None, shares: str, normalized: bool, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.encoder, self.layer, self.normalized = encoder, layer, normalized
        self.shares = sparsemax if shares == "sparsemax" else ops.softmax

    def build(self, x_shape: Any) -> None:
        if self.layer is None:
            count = self.encoder.num_layers + 1
            self.logits_L = self.add_weight((count,), "zeros", name="logits")
            self.gamma = self.add_weight((1,), "ones", name="gamma")

    def call(self, x: Any, attention_mask: Any = None, training: bool = False) -> Any:
        states = self.encoder.states(x, attention_mask, training=training)
        if self.layer is not None:
            return next(itertools.islice(states, self.layer, None))
        if self.normalized:
            mask_BT1 = ops.expand_dims(ops.cast(attention_mask[:, 0, 0], x.dtype), -1)
            states = (_normalized(state, mask_BT1) for state in states)
        shares_L = ops.cast(self.gamma * self.shares(self.logits_L), x.dtype)
        return sum(shares_L[i] * state for i, state in enumerate(states))


def sparsemax(weights_L: Any) -> Any:
    """Return the shares that are closest to numbers; some are 0 (Martins and Astudillo 2016).

    They are max(x - t, 0) of numbers x, with the t at which they sum to 1.
    """
    sorted_L = -ops.sort(-weights_L)
    counts_L = ops.cumsum(ops.ones_like(sorted_L))
    limits_L = (ops.cumsum(sorted_L) - 1) / counts_L
    # t is the largest of the limits, one for each possible number of shares above 0.
    return ops.relu(weights_L - ops.max(limits_L))


def _normalized(x_BTD, mask_BT1):
    """Return states with mean 0 and variance 1 over all features of all tokens of a text."""
    count_B11 = ops.sum(mask_BT1, axis=1, keepdims=True) * x_BTD.shape[-1]
    mean_B11 = ops.sum(x_BTD * mask_BT1, axis=(1, 2), keepdims=True) / count_B11
    centered_BTD = x_BTD - mean_B11
    squares_BTD = ops.square(centered_BTD * mask_BT1)
    variance_B11 = ops.sum(squares_BTD, axis=(1, 2), keepdims=True) / count_B11
    return centered_BTD / ops.sqrt(variance_B11 + 1e-12)


def _of_encoder(base: EncoderOnly, config: MetricConfig, policy: Any) -> Any:
    """Return the function from ids (B, T) to vectors (B, D), a pooled state of an encoder."""
    options = (config.layer, config.shares, config.normalized)
    mixture = Mixture(base.encoder, *options, dtype=policy, name="mixture")
    mixture.build((None, None, config.d_model))

    def vector(ids):
        x_BTD = mixture(
            base.embed({"token_ids": ids}), attention_mask=padding_mask(ids, config.pad_id)
        )
        return pool(x_BTD, ops.not_equal(ids, config.pad_id), [config.pooling])

    return vector


def _of_decoder(base):
    """Return the function from ids (B, T) to vectors (B, D), the decoder's first state."""
    start = base.config.bos_id

    def vector(ids):
        first_ids = ops.full_like(ids[:, :1], start)
        return base.compute_hidden({"source_ids": ids, "target_ids": first_ids})[:, 0]

    return vector


def _head(config, policy):
    """Return the function from the features (B, F) to the score (B, 1)."""
    layers = []
    for i, width in enumerate(config.hidden_sizes):
        layers.append(Dense(width, config.activation, dtype=policy, name=f"hidden_{i}"))
        layers.append(keras.layers.Dropout(config.dropout, dtype=policy))
    # MetricX's score is the logit of a token, which has no bias.
    use_bias, activation = config.family != "T5", config.final_activation
    layers.append(Dense(1, activation, use_bias=use_bias, dtype=policy, name="score"))

    def score(x):
        for layer in layers:
            x = layer(x)
        return x if config.limits is None else ops.clip(x, *config.limits)

    return score


def _compared(translation_ids, source_ids, reference_ids=None):
    """Return the features of vectors (B, D) of texts: (B, 4 D), or (B, 6 D) with a reference."""

    def pair(x):
        return [translation_ids * x, ops.abs(translation_ids - x)]

    if reference_ids is None:
        parts = [translation_ids, source_ids, *pair(source_ids)]
    else:
        parts = [translation_ids, reference_ids, *pair(reference_ids), *pair(source_ids)]
    return ops.concatenate(parts, axis=-1)
