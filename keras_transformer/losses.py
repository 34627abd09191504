"""Losses of tokens, of numbers per token, of alignments, and of pairs of answers or of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_transformer.backend import (
    num_replicas,
    projected_cross_entropy,
    projected_r_drop,
    replica_sum,
    smoothed_cross_entropy,
)
from keras_transformer.config import require


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


def check_labels(labels: Any, shape: Sequence[int | None]) -> None:
    """Raise ValueError unless the labels have this shape; a size None fits any size."""
    pairs = zip(labels.shape, shape, strict=False)
    same = len(labels.shape) == len(shape) and all(x == y or None in (x, y) for x, y in pairs)
    accepted = f"{tuple(shape)}, that of the tokens for which there are predictions"
    require(same, "the shape of the labels", tuple(labels.shape), accepted)


@keras.saving.register_keras_serializable("keras_transformer")
class LabelSmoothedCrossentropy(keras.losses.Loss):
    """Mean label-smoothed cross-entropy of the tokens that are not padding (section 5.4).

    It is defined as `torch.nn.CrossEntropyLoss(label_smoothing=..., ignore_index=...)` is. With the
    replicas of a `tf.distribute` strategy, the mean is over the tokens of all replicas, even
    if their numbers differ: each replica returns its share, and the strategy sums the shares. `fit`
    and `evaluate` of the models in this package report this mean.

    Args:
        label_smoothing: Probability in [0, 1) that is spread evenly over the vocabulary.
        pad_id: Label that is excluded from the sum and the mean.
        r_drop: Weight alpha of the divergence between two passes with different dropout, at least 0
            (R-Drop, Liang et al. 2021): `fit` runs each batch twice, see `of_two`. 0: one pass.

    Call arguments:
        y_true: Labels (B, T), integers.
        y_pred: Logits (B, T, V).
        sample_weight: Optional weights, per sentence (B,) or per token (B, T).

    Raises:
        ValueError: If `label_smoothing` or `r_drop` is out of range.
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        pad_id: int = 0,
        r_drop: float = 0.0,
        name: str = "label_smoothed_crossentropy",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        require(0 <= label_smoothing < 1, "label_smoothing", label_smoothing, "in [0, 1)")
        require(0 <= r_drop < math.inf, "r_drop", r_drop, "at least 0")
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id
        self.r_drop = r_drop

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return smoothed_cross_entropy(y_pred, y_true, self.label_smoothing)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.convert_to_tensor(y_true)
        check_labels(y_true, y_pred.shape[:-1])
        return self._mean(self.call(y_true, y_pred), y_true, sample_weight)

    def of_hidden(
        self, y_true: Any, hidden: Any, table: Any, sample_weight: Any = None
    ) -> tuple[Any, Any]:
        """Return the loss from the input of the output projection; faster in training than a call.

        Args:
            y_true: Labels (B, T), integers.
            hidden: Hidden states (B, T, D); the logits would be `hidden @ table.T`.
            table: Output projection (V, D).
            sample_weight: Optional weights, per sentence (B,) or per token (B, T).

        Returns:
            The loss, and the negative log-likelihood without label smoothing (B, T).
        """
        y_true = ops.convert_to_tensor(y_true)
        check_labels(y_true, hidden.shape[:-1])
        loss_BT, likelihood_BT = projected_cross_entropy(
            hidden, table, y_true, self.label_smoothing, self.pad_id
        )
        return self._mean(loss_BT, y_true, sample_weight), likelihood_BT

    def of_two(
        self, y_true: Any, hidden: Any, table: Any, sample_weight: Any = None
    ) -> tuple[Any, Any]:
        """Return R-Drop's loss of two passes, see `backend.projected_r_drop`.

        Args:
            y_true, table, sample_weight: See `of_hidden`.
            hidden: Hidden states (2 B, T, D), those of the second pass after those of the first.

        Returns:
            The same as `of_hidden`, with the likelihood of the first pass.
        """
        y_true = ops.convert_to_tensor(y_true)
        check_labels(y_true, (None, *hidden.shape[1:-1]))
        hidden = ops.reshape(hidden, (2, -1, *hidden.shape[1:]))
        loss_BT, likelihood_BT = projected_r_drop(
            hidden, table, y_true, self.label_smoothing, self.r_drop, self.pad_id
        )
        return self._mean(loss_BT, y_true, sample_weight), likelihood_BT

    def batch_weight(self, y_true: Any, sample_weight: Any = None) -> Any:
        """Return the number of tokens that are not padding, or the sum of their weights."""
        return ops.sum(token_weights(y_true, self.pad_id, sample_weight))

    def _mean(self, loss_BT: Any, y_true: Any, sample_weight: Any) -> Any:
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
            "r_drop": self.r_drop,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedSquaredError(keras.losses.Loss):
    """Mean squared error of the labelled tokens; all other tokens have the label NaN.

    Call arguments:
        y_true: Labels (B, T), numbers or NaN.
        y_pred: Predictions (B, T, 1).
        sample_weight: Optional weights (B,) or (B, T).
    """

    def __init__(self, name: str = "masked_squared_error", dtype: Any = None):
        super().__init__(name=name, reduction=None, dtype=dtype)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.cast(ops.convert_to_tensor(y_true), "float32")
        y_pred = ops.cast(ops.convert_to_tensor(y_pred), "float32")[..., 0]
        check_labels(y_true, y_pred.shape)
        weight_BT = self._weights(y_true, sample_weight)
        known_BT = ops.where(ops.isnan(y_true), y_pred, y_true)
        total = replica_sum(ops.sum(weight_BT))
        return ops.sum(ops.square(y_pred - known_BT) * weight_BT) / ops.maximum(total, 1e-9)

    def batch_weight(self, y_true: Any, sample_weight: Any = None) -> Any:
        """Return the number of labelled tokens (label not NaN), or the sum of their weights."""
        return ops.sum(self._weights(y_true, sample_weight))

    def _weights(self, y_true: Any, sample_weight: Any) -> Any:
        return token_weights(ops.cast(ops.isnan(y_true), "int32"), 1, sample_weight)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["reduction"]  # always the mean over tokens
        return config


def alignment_loss(weights_BTS: Any, alignment_BT: Any, counts_BT: Any) -> Any:
    """Return the mean over target tokens of -log(attention to the aligned source token).

    This is the alignment loss of Garg et al. 2019, section 4.2. With several replicas, the mean of
    their results is the loss of all rows.

    Args:
        weights_BTS: Weights of one attention head; rows sum to 1.
        alignment_BT: Index of the source token that each target token translates. A target token
            with an index below 0 adds nothing to the sum.
        counts_BT: Boolean, True for the target tokens that the mean counts: all but padding.
    """
    indices_BT1 = ops.expand_dims(ops.maximum(alignment_BT, 0), -1)
    weight_BT = ops.cast(ops.take_along_axis(weights_BTS, indices_BT1, axis=-1)[..., 0], "float32")
    loss_BT = -ops.log(ops.maximum(weight_BT, 1e-9)) * ops.cast(alignment_BT >= 0, "float32")
    num_tokens = replica_sum(ops.sum(ops.cast(counts_BT, "float32"))) / num_replicas()
    return ops.sum(loss_BT) / ops.maximum(num_tokens, 1e-9)


KINDS = ("sigmoid", "ipo", "hinge", "cpo")


def log_probabilities(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return log p of the labels of each row, (R,), and their number, (R,).

    Args:
        y_true: (R, 1 + T): the row's log-probability under a reference model, then labels. Labels
            below 0 (prompts and padding) do not count. Floats hold labels exactly up to 2^24.
        y_pred: Logits (R, T, V).
    """
    labels_RT = ops.cast(y_true[:, 1:], "int32")
    counts_RT = ops.cast(labels_RT >= 0, "float32")
    loss_RT = smoothed_cross_entropy(y_pred, ops.maximum(labels_RT, 0), 0.0)
    return -ops.sum(loss_RT * counts_RT, axis=1), ops.sum(counts_RT, axis=1)


@keras.saving.register_keras_serializable("keras_transformer")
class PreferenceLoss(keras.losses.Loss):
    """Loss of pairs of answers to a prompt, of which one is preferred to the other.

    Rows 2i and 2i + 1 of a batch are the preferred and the other answer of pair i. With
    r = log p(answer) - log p_reference(answer) and h = r_preferred - r_other, the loss is the mean
    of

    - "sigmoid": -log sigmoid(beta h), DPO (Rafailov et al. 2023, equation 7);
    - "ipo": (h - 1 / (2 beta))^2, with r per token (Azar et al. 2023, equation 17);
    - "hinge": max(0, 1 - beta h), SLiC (Zhao et al. 2023, section 2.2);
    - "cpo": -log sigmoid(beta h) with r = log p(answer), plus the negative log-likelihood per token
      of the preferred answers (Xu et al. 2024, equations 3 to 5). It needs no reference.

    Pairs in which an answer has no labels, which only fill a batch, do not count.

    Args:
        kind: One of "sigmoid", "ipo", "hinge", "cpo".
        beta: Factor of h, above 0; with lower values the model may move further away from the
            reference.

    Call arguments:
        y_true: (2B, 1 + T), see `log_probabilities`; `data.preferences` makes it.
        y_pred: Logits (2B, T, V).

    Raises:
        ValueError: If `kind` is unknown, `beta` is not above 0, or sample weights are given.
    """

    def __init__(
        self,
        kind: str = "sigmoid",
        beta: float = 0.1,
        name: str = "preference_loss",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        require(kind in KINDS, "kind", kind, f"one of {KINDS}")
        require(beta > 0, "beta", beta, "above 0")
        self.kind, self.beta = kind, beta

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        _check_unweighted(sample_weight)
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        reward_R, log_prob_R, count_R = self.rewards(y_true, y_pred)
        weight_B = ops.cast(count_R[0::2] * count_R[1::2] > 0, "float32")
        h_B = reward_R[0::2] - reward_R[1::2]
        if self.kind == "ipo":
            loss_B = ops.square(h_B - 1 / (2 * self.beta))
        elif self.kind == "hinge":
            loss_B = ops.relu(1 - self.beta * h_B)
        else:
            loss_B = ops.softplus(-self.beta * h_B)
        loss = ops.sum(loss_B * weight_B) / ops.maximum(ops.sum(weight_B), 1.0)
        if self.kind == "cpo":
            tokens = ops.maximum(ops.sum(count_R[0::2]), 1.0)
            loss = loss - ops.sum(log_prob_R[0::2]) / tokens
        return loss

    def batch_weight(self, y_true: Any, sample_weight: Any = None) -> Any:
        """Return the number of pairs that have labels."""
        count_R = ops.sum(ops.cast(y_true[:, 1:] >= 0, "float32"), axis=1)
        return ops.sum(ops.cast(count_R[0::2] * count_R[1::2] > 0, "float32"))

    def rewards(self, y_true: Any, y_pred: Any) -> tuple[Any, Any, Any]:
        """Return r, the log-probability and the number of labels of each row, (2B,) each."""
        log_prob_R, count_R = log_probabilities(y_true, y_pred)
        if self.kind == "cpo":
            return log_prob_R, log_prob_R, count_R
        reward_R = log_prob_R - ops.cast(y_true[:, 0], "float32")
        if self.kind == "ipo":
            reward_R = reward_R / ops.maximum(count_R, 1.0)
        return reward_R, log_prob_R, count_R

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["reduction"]  # always the mean over pairs
        return {**config, "kind": self.kind, "beta": self.beta}


@keras.saving.register_keras_serializable("keras_transformer")
class RewardLoss(keras.losses.Loss):
    """Mean over pairs of -log sigmoid(score of the preferred answer - score of the other).

    This is the model of Bradley and Terry 1952, as in Ouyang et al. 2022, equation 1. Rows 2i and
    2i + 1 of a batch are the preferred and the other answer of pair i.

    Call arguments:
        y_true: Not read; any tensor with 2B rows.
        y_pred: Scores (2B, 1).

    Raises:
        ValueError: If sample weights are given.
    """

    def __init__(self, name: str = "reward_loss", dtype: Any = None):
        super().__init__(name=name, dtype=dtype)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        _check_unweighted(sample_weight)
        score_R = ops.cast(ops.reshape(ops.convert_to_tensor(y_pred), (-1,)), "float32")
        return ops.mean(ops.softplus(score_R[1::2] - score_R[0::2]))

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable("keras_transformer")
class ContrastiveLoss(keras.losses.Loss):
    """Loss of pairs of texts: each text is to be recognized among those of its batch (InfoNCE).

    Rows 2i and 2i + 1 of a batch are the vectors x_i and y_i of pair i. With
    s_ij = cos(x_i, y_j) / temperature, the loss is the mean over i of

        (log sum_j exp(s_ij) + log sum_j exp(s_ji)) / 2 - s_ii

    (van den Oord et al. 2018, equation 4; in both directions: Radford et al. 2021, figure 3). A
    pair j that has a text of pair i is left out of the sums for i.

    Args:
        temperature: Above 0; with lower values, the most similar of the other texts count more.
        sizes: The loss is the sum of those of the vectors cut to each of these sizes (Matryoshka,
            Kusupati et al. 2022, equation 1). Empty: whole vectors only.

    Call arguments:
        y_true: (2N,), whole numbers; equal numbers mark equal texts. `data.text_pairs` makes it.
        y_pred: Vectors (2N, D).

    Raises:
        ValueError: If a value is out of range, or sample weights are given.
    """

    def __init__(
        self,
        temperature: float = 0.05,
        sizes: Sequence[int] = (),
        name: str = "contrastive_loss",
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        require(0 < temperature < math.inf, "temperature", temperature, "above 0")
        are_whole = all(type(x) is int and x > 0 for x in sizes)
        require(are_whole, "sizes", sizes, "whole numbers of at least 1")
        self.temperature, self.sizes = temperature, tuple(sizes)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        _check_unweighted(sample_weight)
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        width = y_pred.shape[-1]
        require(max(self.sizes, default=1) <= width, "sizes", self.sizes, f"at most {width}")
        x_N, y_N = y_true[0::2], y_true[1::2]
        places_N = ops.cumsum(ops.ones_like(x_N, dtype="int32"))
        same_x, same_y, same_place = (x[:, None] == x[None] for x in (x_N, y_N, places_N))
        ignored_NN = ops.logical_and(ops.logical_or(same_x, same_y), ops.logical_not(same_place))
        return sum(self._of(y_pred[:, :size], ignored_NN) for size in self.sizes or (width,))

    def _of(self, vectors_RD: Any, ignored_NN: Any) -> Any:
        vectors_RD = ops.normalize(ops.cast(vectors_RD, "float32"), axis=-1)
        x_ND, y_ND = vectors_RD[0::2], vectors_RD[1::2]
        s_NN = ops.where(ignored_NN, -1e9, x_ND @ ops.transpose(y_ND) / self.temperature)
        sums_N = ops.logsumexp(s_NN, axis=1) + ops.logsumexp(s_NN, axis=0)
        return ops.mean(sums_N / 2 - ops.sum(x_ND * y_ND, axis=-1) / self.temperature)

    def batch_weight(self, y_true: Any, sample_weight: Any = None) -> Any:
        """Return the number of pairs."""
        return ops.cast(ops.shape(y_true)[0], "float32") / 2

    def get_config(self) -> dict[str, Any]:
        options = dict(temperature=self.temperature, sizes=self.sizes)
        return {"name": self.name, "dtype": self.dtype, **options}


def _check_unweighted(sample_weight: Any) -> None:
    if sample_weight is not None:
        raise ValueError("sample_weight must be None: pairs have no weights")
