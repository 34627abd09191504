"""Label-smoothed cross-entropy over integer labels, without padding."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_transformer.backend import projected_cross_entropy, replica_sum, smoothed_cross_entropy


def token_weights(labels_BT: Any, pad_id: int, sample_weight: Any = None) -> Any:
    """Return the weight of each label: (B, T) float32, 0 for padding.

    All other labels have the weight 1, or `sample_weight`, which is (B,) or (B, T).
    """
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
    the replicas of a `tf.distribute` strategy, the mean is over the tokens of all replicas, even
    if their numbers differ: each replica returns its share, and the strategy sums the shares. `fit`
    and `evaluate` report this mean. (With metrics that need logits, Keras computes it: exact if all
    replicas have the same number of rows.)

    Args:
        label_smoothing: Probability in [0, 1) that is spread evenly over the vocabulary.
        pad_id: Label that is excluded from the sum and the mean.

    Call arguments:
        y_true: Labels (B, T), integers.
        y_pred: Logits (B, T, V).
        sample_weight: Optional weights, per sentence (B,) or per token (B, T).

    Raises:
        ValueError: If `label_smoothing` is out of range.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        pad_id: int = 0,
        name: str = "label_smoothed_crossentropy",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"label_smoothing must be in [0, 1), got {label_smoothing!r}")
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return smoothed_cross_entropy(y_pred, y_true, self.label_smoothing)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.convert_to_tensor(y_true)
        return self._mean(self.call(y_true, y_pred), y_true, sample_weight)

    def of_hidden(
        self, y_true: Any, hidden: Any, table: Any, sample_weight: Any = None
    ) -> tuple[Any, Any]:
        """Return the same loss from the input of the output projection; faster in training.

        Args:
            y_true: Labels (B, T), integers.
            hidden: Hidden states (B, T, D); the logits would be `hidden @ table.T`.
            table: Output projection (V, D).
            sample_weight: Optional weights, per sentence (B,) or per token (B, T).

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

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["reduction"]  # always the mean over tokens
        return {
            **config,
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
        }
