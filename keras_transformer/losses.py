"""Label-smoothed cross-entropy over integer labels that leaves padding out."""

from __future__ import annotations

import keras
from keras import ops

from keras_transformer.backend import projected_cross_entropy, replica_sum, smoothed_cross_entropy


def token_weights(labels_BT, pad_id, sample_weight=None):
    """1 for each token, 0 for padding, times `sample_weight` (B,) or (B, T): (B, T) float32."""
    weight_BT = ops.cast(ops.not_equal(labels_BT, pad_id), "float32")
    if sample_weight is None:
        return weight_BT
    sample_weight = ops.cast(sample_weight, "float32")
    if len(sample_weight.shape) == 1:
        sample_weight = ops.expand_dims(sample_weight, 1)
    return weight_BT * sample_weight


@keras.saving.register_keras_serializable("keras_transformer")
class LabelSmoothedCrossentropy(keras.losses.Loss):
    """Mean label-smoothed cross-entropy of the tokens that are not padding (section 5.4).

    The same definition as `torch.nn.CrossEntropyLoss(label_smoothing=..., ignore_index=...)`. With
    replicas of a `tf.distribute` strategy the mean is over the tokens of all of them, whatever
    number each has; a replica returns its share, which the strategy sums. (The loss that `fit`
    reports is weighted by rows: exact where replicas have equally many.)

    Args:
        label_smoothing: e in [0, 1): probability spread evenly over the vocabulary.
        pad_id: label that is left out of sum and mean.

    Call arguments:
        y_true: labels (B, T), integers.
        y_pred: logits (B, T, V).
        sample_weight: optional, one a sentence (B,) or a token (B, T).

    Raises:
        ValueError: if `label_smoothing` is out of range.
    """

    def __init__(
        self, label_smoothing=0.1, pad_id=0, name="label_smoothed_crossentropy", dtype=None
    ):
        super().__init__(name=name, dtype=dtype)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing!r}")
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id

    def call(self, y_true, y_pred):
        return smoothed_cross_entropy(y_pred, y_true, self.label_smoothing)

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.convert_to_tensor(y_true)
        return self._mean(self.call(y_true, y_pred), y_true, sample_weight)

    def of_hidden(self, y_true, hidden, table, sample_weight=None):
        """The same loss from what the logits are a projection of, which is faster in training.

        Args:
            y_true: labels (B, T), integers.
            hidden: (B, T, D); the logits would be `hidden @ table.T`.
            table: (V, D).
            sample_weight: optional, one a sentence (B,) or a token (B, T).

        Returns:
            The loss, and the negative log-likelihood without label smoothing (B, T).
        """
        y_true = ops.convert_to_tensor(y_true)
        loss_BT, likelihood_BT = projected_cross_entropy(
            hidden, table, y_true, self.label_smoothing, self.pad_id
        )
        return self._mean(loss_BT, y_true, sample_weight), likelihood_BT

    def _mean(self, loss_BT, y_true, sample_weight):
        weight_BT = token_weights(y_true, self.pad_id, sample_weight)
        total = replica_sum(ops.sum(weight_BT))
        return ops.sum(loss_BT * weight_BT) / ops.maximum(total, 1e-9)

    def get_config(self):
        config = super().get_config()
        del config["reduction"]  # always the mean over tokens
        return {
            **config,
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
        }
