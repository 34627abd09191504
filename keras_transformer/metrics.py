"""Accuracy and perplexity over the tokens that are not padding."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer.backend import smoothed_cross_entropy
from keras_transformer.losses import token_weights


class _TokenMean(keras.metrics.Metric):
    """Mean of a value per token, over all tokens but padding."""

    def __init__(self, pad_id=0, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id
        self.total = self.add_weight(name="total", initializer="zeros")
        self.count = self.add_weight(name="count", initializer="zeros")

    def per_token(self, y_true, y_pred):
        """(B, T): the value of each token."""
        raise TypeError(f"{type(self).__name__} must define per_token")

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        weight = token_weights(y_true, self.pad_id, sample_weight)
        value = ops.cast(self.per_token(y_true, y_pred), "float32")
        self.total.assign_add(ops.sum(value * weight))
        self.count.assign_add(ops.sum(weight))

    def result(self):
        return self.total / ops.maximum(self.count, 1e-9)

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedAccuracy(_TokenMean):
    """Share of tokens whose most probable prediction is the label.

    Args:
        pad_id: label that does not count.
    """

    def __init__(self, pad_id=0, name="accuracy", **kwargs):
        super().__init__(pad_id, name, **kwargs)

    def per_token(self, y_true, y_pred):
        return ops.equal(ops.cast(y_true, "int32"), ops.argmax(y_pred, axis=-1))


@keras.saving.register_keras_serializable("keras_transformer")
class Perplexity(_TokenMean):
    """exp(mean negative log-likelihood a token), without label smoothing (section 6.1).

    Args:
        pad_id: label that does not count.

    Call arguments:
        y_true: labels (B, T), integers.
        y_pred: logits (B, T, V), or the negative log-likelihood (B, T) where the loss knows it.
        sample_weight: optional, one a sentence (B,) or a token (B, T).
    """

    def __init__(self, pad_id=0, name="perplexity", **kwargs):
        super().__init__(pad_id, name, **kwargs)

    def per_token(self, y_true, y_pred):
        if len(y_pred.shape) == len(y_true.shape):
            return y_pred
        return smoothed_cross_entropy(ops.stop_gradient(y_pred), y_true, 0.0)

    def result(self):
        return ops.exp(super().result())
