"""Accuracy and perplexity over the tokens that are not padding; accuracy of preferences."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import smoothed_cross_entropy
from keras_transformer.losses import PreferenceLoss, check_labels, token_weights


class _TokenMean(keras.metrics.Metric):
    """Mean of a value per token, weighted by `sample_weight`, over all tokens except padding."""

    def __init__(self, pad_id: int = 0, name: str | None = None, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def per_token(self, y_true: Any, y_pred: Any) -> Any:
        """Return the value of each token: (B, T)."""
        raise TypeError(f"{type(self).__name__} must define per_token")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        check_labels(y_true, y_pred.shape[:2])
        weight = token_weights(y_true, self.pad_id, sample_weight)
        value = ops.cast(self.per_token(y_true, y_pred), "float32")
        self.total.assign_add(ops.sum(value * weight))
        self.count.assign_add(ops.sum(weight))

    def result(self) -> Any:
        return self.total / ops.maximum(self.count, 1e-9)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedAccuracy(_TokenMean):
    """Share of tokens whose most probable prediction is the label.

    Args:
        pad_id: Label that is not counted.

    Call arguments:
        y_true: Labels (B, T), integers.
        y_pred: Logits (B, T, V).
        sample_weight: Optional weights, per sentence (B,) or per token (B, T).
    """

    def __init__(self, pad_id: int = 0, name: str = "accuracy", **kwargs: Any):
        super().__init__(pad_id, name, **kwargs)

    def per_token(self, y_true: Any, y_pred: Any) -> Any:
        return ops.equal(ops.cast(y_true, "int32"), ops.argmax(y_pred, axis=-1))


@keras.saving.register_keras_serializable("keras_transformer")
class Perplexity(_TokenMean):
    """exp(mean negative log-likelihood per token), without label smoothing (section 6.1).

    Args:
        pad_id: Label that is not counted.

    Call arguments:
        y_true: Labels (B, T), integers.
        y_pred: Logits (B, T, V), or negative log-likelihoods (B, T) that the loss has computed.
        sample_weight: Optional weights, per sentence (B,) or per token (B, T).
    """

    def __init__(self, pad_id: int = 0, name: str = "perplexity", **kwargs: Any):
        super().__init__(pad_id, name, **kwargs)

    def per_token(self, y_true: Any, y_pred: Any) -> Any:
        if len(y_pred.shape) == len(y_true.shape):
            return y_pred
        return smoothed_cross_entropy(ops.stop_gradient(y_pred), y_true, 0.0)

    def result(self) -> Any:
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("keras_transformer")
class PreferenceAccuracy(keras.metrics.Metric):
    """Share of pairs whose preferred answer has the higher reward, see `PreferenceLoss`.

    Args:
        kind: `kind` of the loss; or "reward", for scores (2B, 1) of a reward model as `y_pred`.

    `update_state` takes the labels and predictions of the loss; `sample_weight` is not read.
    """

    def __init__(self, kind: str = "sigmoid", name: str = "accuracy", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.kind = kind
        self._loss = None if kind == "reward" else PreferenceLoss(kind)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        if self._loss is None:
            reward_R = ops.reshape(y_pred, (-1,))
            weight_B = ops.ones_like(reward_R[0::2])
        else:
            reward_R, _, count_R = self._loss.rewards(y_true, ops.stop_gradient(y_pred))
            weight_B = ops.cast(count_R[0::2] * count_R[1::2] > 0, "float32")
        right_B = ops.cast(reward_R[0::2] > reward_R[1::2], "float32")
        self.total.assign_add(ops.sum(right_B * ops.cast(weight_B, "float32")))
        self.count.assign_add(ops.sum(ops.cast(weight_B, "float32")))

    def result(self) -> Any:
        return self.total / ops.maximum(self.count, 1e-9)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "kind": self.kind}
