"""Losses per token: label-smoothed cross-entropy (section 5.4), and R-Drop's loss."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend.compilation import BACKEND
from keras_transformer.backend.dispatch import uses_torch_kernels
from keras_transformer.backend.precision import at_least_float32

if BACKEND == "tensorflow":
    import tensorflow as tf
elif BACKEND == "torch":
    import torch

    from keras_transformer.backend.torch import cross_entropy, r_drop


def smoothed_cross_entropy(logits_BTV: Any, labels_BT: Any, label_smoothing: float) -> Any:
    """Return -sum_v q(v) log p(v) per token, q = (1 - e) onehot(label) + e / V: (B, T).

    e is `label_smoothing`, in [0, 1).

    Computed in float32, or float64 if the logits are. With log Z = logsumexp(logits), the loss is
    log Z - (1 - e) logit[label] - e mean(logits), which needs no distribution over the vocabulary.
    Labels below 0, which mark ignored tokens, get the loss of label 0. On PyTorch a built-in
    function computes it: with the formula, autograd would store eight matrices (tokens x
    vocabulary), which takes half of the training time of a small model.
    """
    if BACKEND == "torch":
        logits_BTV = at_least_float32(logits_BTV)
        labels_BT = ops.cast(labels_BT, "int64").clamp(min=0)
        loss_N = torch.nn.functional.cross_entropy(
            logits_BTV.reshape(-1, logits_BTV.shape[-1]),
            labels_BT.reshape(-1),
            reduction="none",
            label_smoothing=label_smoothing,
        )
        return loss_N.reshape(labels_BT.shape)
    logits_BTV = at_least_float32(logits_BTV)
    labels_BT1 = ops.expand_dims(ops.maximum(ops.cast(labels_BT, "int32"), 0), -1)
    chosen_BT = ops.take_along_axis(logits_BTV, labels_BT1, axis=-1)[..., 0]
    loss_BT = ops.logsumexp(logits_BTV, axis=-1) - chosen_BT
    if not label_smoothing:
        return loss_BT
    return loss_BT + label_smoothing * (chosen_BT - ops.mean(logits_BTV, axis=-1))


def projected_cross_entropy(
    hidden_BTD: Any, table_VD: Any, labels_BT: Any, label_smoothing: float, pad_id: int
) -> tuple[Any, Any]:
    """Return `smoothed_cross_entropy` of the logits hidden @ table^T, with and without smoothing.

    For training: fuses the output projection and the loss as far as the backend can. The loss of
    labels equal to `pad_id` is an arbitrary finite number.

    Args:
        hidden_BTD: Output of the last layer.
        table_VD: Output projection, of the same dtype.
        labels_BT: Integer labels.
        label_smoothing: Label smoothing e.
        pad_id: Label of tokens that do not count.

    Returns:
        The smoothed loss (B, T), and the negative log-likelihood (B, T), which has no gradient.
    """
    if uses_torch_kernels(hidden_BTD):
        return cross_entropy.projected_cross_entropy(
            hidden_BTD, table_VD, labels_BT, label_smoothing, pad_id
        )
    labels_BT = ops.maximum(ops.cast(labels_BT, "int32"), 0)
    logits_BTV = at_least_float32(ops.matmul(hidden_BTD, ops.transpose(table_VD)))
    hidden_BTD, table_VD = at_least_float32(hidden_BTD), at_least_float32(table_VD)
    if BACKEND == "tensorflow":
        # A single operation computes loss and gradient. The smoothing term is computed from the
        # hidden states: the gradient of a gather would be another matrix (tokens x vocabulary).
        likelihood_BT = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_BT, logits_BTV)
        chosen_BT = ops.sum(hidden_BTD * ops.take(table_VD, labels_BT, axis=0), axis=-1)
    else:
        chosen_BT = ops.take_along_axis(logits_BTV, labels_BT[..., None], axis=-1)[..., 0]
        likelihood_BT = ops.logsumexp(logits_BTV, axis=-1) - chosen_BT
    mean_BT = ops.matmul(hidden_BTD, ops.mean(table_VD, axis=0))
    loss_BT = likelihood_BT + label_smoothing * (chosen_BT - mean_BT)
    return loss_BT, ops.stop_gradient(likelihood_BT)


def projected_r_drop(
    hidden_2BTD: Any,
    table_VD: Any,
    labels_BT: Any,
    label_smoothing: float,
    alpha: float,
    pad_id: int,
) -> tuple[Any, Any]:
    """Return R-Drop's loss of two passes with different dropout (Liang et al. 2021, equation 4).

    It is half of the paper's loss: (c1 + c2) / 2 + alpha / 2 (KL(p1, p2) + KL(p2, p1)) / 2, where c
    are the smoothed cross-entropies and p the distributions of the two passes. So it equals the
    cross-entropy if both passes are equal.

    Args:
        hidden_2BTD: Outputs of the last layer in the two passes.
        table_VD: Output projection, of the same dtype.
        labels_BT: Integer labels.
        label_smoothing: Label smoothing.
        alpha: Weight of the divergence.
        pad_id: Label of tokens that do not count: their loss is an arbitrary finite number.

    Returns:
        The loss (B, T), and the negative log-likelihood of the first pass (B, T), which has no
        gradient.
    """
    if uses_torch_kernels(hidden_2BTD):
        return r_drop.projected_r_drop(
            hidden_2BTD, table_VD, labels_BT, label_smoothing, alpha, pad_id
        )
    labels_BT = ops.maximum(ops.cast(labels_BT, "int32"), 0)
    logits_2BTV = at_least_float32(ops.matmul(hidden_2BTD, ops.transpose(table_VD)))
    logs_2BTV = ops.log_softmax(logits_2BTV, axis=-1)
    labels_2BT1 = ops.expand_dims(ops.stack([labels_BT, labels_BT]), -1)
    chosen_2BT = ops.take_along_axis(logs_2BTV, labels_2BT1, axis=-1)[..., 0]
    smoothed_2BT = -(1 - label_smoothing) * chosen_2BT
    if label_smoothing:
        smoothed_2BT -= label_smoothing * ops.mean(logs_2BTV, axis=-1)
    apart_BTV = ops.exp(logs_2BTV[0]) - ops.exp(logs_2BTV[1])
    divergence_BT = ops.sum(apart_BTV * (logs_2BTV[0] - logs_2BTV[1]), axis=-1)
    loss_BT = ops.mean(smoothed_2BT, axis=0) + alpha / 4 * divergence_BT
    return loss_BT, ops.stop_gradient(-chosen_2BT[0])
