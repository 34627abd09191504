"""R-Drop's loss from the hidden states of two passes, with one matrix of logits per pass."""

from __future__ import annotations

from typing import Any

import torch

from keras_transformer.backend.torch.cross_entropy import (
    at_all_places,
    chunk_rows,
    real_tokens,
    workspace,
)
from keras_transformer.backend.torch.matrix_products import product


class ProjectedRDrop(torch.autograd.Function):
    """(c1 + c2) / 2 + alpha / 2 (KL(p1, p2) + KL(p2, p1)) / 2 per token, and c1 without smoothing.

    p1 and p2 are the distributions of the two hidden states, c1 and c2 their smoothed
    cross-entropies. With r = log p1 - log p2, the two divergences add up to sum((p1 - p2) r). The
    gradient of this sum with respect to the logits of p1 is p1 (r - sum(p1 r)) + p1 - p2. The
    forward pass overwrites the logits with the gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_2ND: torch.Tensor,
        table_VD: torch.Tensor,
        labels_N: torch.Tensor,
        label_smoothing: float,
        alpha: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and the negative log-likelihood (N,); replace logits by gradients."""
        size, vocab_size = len(labels_N), len(table_VD)
        buffer = workspace.take(2 * size * vocab_size, hidden_2ND)
        logits_2NV = buffer[: 2 * size * vocab_size].view(2, size, vocab_size)
        torch.mm(
            hidden_2ND.reshape(2 * size, -1), table_VD.t(), out=logits_2NV.view(-1, vocab_size)
        )
        loss_N = torch.empty(size, device=hidden_2ND.device)
        likelihood_N = torch.empty_like(loss_N)
        rows = chunk_rows(hidden_2ND, vocab_size)
        for start in range(0, size, rows):
            part = slice(start, start + rows)
            logs = torch.log_softmax(logits_2NV[:, part].float(), dim=-1)
            odds = logs.exp()
            chosen = logs.gather(2, labels_N[part].expand(2, -1)[..., None])[..., 0]
            smoothed = -(1 - label_smoothing) * chosen - label_smoothing * logs.mean(-1)
            ratio, apart = logs[0] - logs[1], odds[0] - odds[1]
            divergence = (apart * ratio).sum(-1)
            loss_N[part] = smoothed.mean(0) + alpha / 4 * divergence
            likelihood_N[part] = -chosen[0]
            gradients = logs  # overwritten
            for k, sign in ((0, 1), (1, -1)):
                terms = ratio.mul(sign)
                terms -= (odds[k] * terms).sum(-1, keepdim=True)
                torch.mul(odds[k], terms, out=gradients[k]).add_(apart, alpha=sign).mul_(alpha / 4)
                gradients[k].add_(odds[k], alpha=0.5).sub_(label_smoothing / vocab_size / 2)
                label_indices = torch.arange(len(terms), device=terms.device), labels_N[part]
                gradients[k][label_indices] -= (1 - label_smoothing) / 2
            logits_2NV[:, part] = gradients
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(hidden_2ND, table_VD)
            ctx.buffer = buffer
        else:
            workspace.give(buffer)
        ctx.mark_non_differentiable(likelihood_N)
        return loss_N, likelihood_N

    @staticmethod
    def backward(ctx: Any, gradient_N: torch.Tensor, _: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of the hidden states and of the table."""
        hidden_2ND, table_VD = ctx.saved_tensors
        if ctx.buffer is None:
            raise RuntimeError("the gradient of this loss can be computed only once")
        _, size, width = hidden_2ND.shape
        gradients_MV = ctx.buffer[: 2 * size * len(table_VD)].view(2 * size, len(table_VD))
        factor_M1 = gradient_N.to(hidden_2ND.dtype).repeat(2)[:, None]
        hidden_MD = hidden_2ND.reshape(2 * size, width)
        hidden_gradient_MD = product(gradients_MV, table_VD) * factor_M1
        table_gradient_VD = product(gradients_MV.t(), hidden_MD * factor_M1)
        workspace.give(ctx.buffer)
        ctx.buffer = None
        return hidden_gradient_MD.view_as(hidden_2ND), table_gradient_VD, None, None, None


def projected_r_drop(
    hidden_2BTD: torch.Tensor,
    table_VD: torch.Tensor,
    labels_BT: torch.Tensor,
    label_smoothing: float,
    alpha: float,
    pad_id: int,
) -> tuple[torch.Tensor, ...]:
    """Kernel of `backend.projected_r_drop`; on a CPU it also skips padding in products."""
    hidden_2ND = hidden_2BTD.reshape(2, -1, hidden_2BTD.shape[-1])
    labels_N, real_M = real_tokens(labels_BT, pad_id)
    if real_M is not None:
        hidden_2ND, labels_N = hidden_2ND.index_select(1, real_M), labels_N[real_M]
    results = ProjectedRDrop.apply(hidden_2ND, table_VD, labels_N, label_smoothing, alpha)
    return at_all_places(results, labels_BT, real_M)
