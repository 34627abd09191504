"""Cross-entropy from hidden states, with only one matrix of logits in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from keras_transformer.backend.torch.matrix_products import product

_CHUNK = 1 << 19  # logits to process at a time: 2 MiB in float32, which stays in cache


class _Workspace:
    """Buffers that are reused across steps: fresh memory costs a page fault every 4 KiB."""

    def __init__(self):
        self.free: dict[tuple, list[torch.Tensor]] = {}

    def take(self, size, like):
        free = self.free.setdefault((like.dtype, like.device), [])
        while free:
            if (buffer := free.pop()).numel() >= size:
                return buffer
        return torch.empty(size, dtype=like.dtype, device=like.device)

    def give(self, buffer):
        self.free[buffer.dtype, buffer.device].append(buffer)


workspace = _Workspace()


class ProjectedCrossEntropy(torch.autograd.Function):
    """Cross-entropy of `hidden @ table.T` per token, with and without label smoothing.

    The logits z exist once, in the dtype of `hidden`; the gradient overwrites them. With label
    smoothing e the loss is log Z - z[label] + e (z[label] - mean(z)), and mean(z) is the product of
    `hidden` and the table's mean row, so smoothing adds only vectors, not matrices of logits. Only
    the first result has a gradient, which can be computed only once.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: torch.Tensor,
        table_VD: torch.Tensor,
        labels_N: torch.Tensor,
        label_smoothing: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss and the negative log-likelihood (N,); keep the logits for `backward`."""
        size, vocab_size = len(hidden_ND), len(table_VD)
        buffer = workspace.take(size * vocab_size, hidden_ND)
        logits_NV = buffer[: size * vocab_size].view(size, vocab_size)
        torch.mm(hidden_ND, table_VD.t(), out=logits_NV)
        rows = chunk_rows(hidden_ND, vocab_size)
        chunk = torch.empty((min(rows, size), vocab_size), device=hidden_ND.device)
        chosen_N = logits_NV.gather(1, labels_N[:, None])[:, 0].float()
        likelihood_N = torch.empty_like(chosen_N)
        for start in range(0, size, rows):
            part = slice(start, start + rows)
            x = chunk[: min(rows, size - start)].copy_(logits_NV[part])
            torch.log_softmax(x, dim=1, out=x)
            torch.neg(x.gather(1, labels_N[part, None])[:, 0], out=likelihood_N[part])
        loss_N = likelihood_N.clone()
        if label_smoothing:
            # Mean of the table's rows, by a product: `mean` would copy the table to float32.
            mean_D = table_VD.new_ones((1, vocab_size)).mm(table_VD)[0] / vocab_size
            mean_N = (hidden_ND @ mean_D).float()
            loss_N += label_smoothing * (chosen_N - mean_N)
        if any(ctx.needs_input_grad):
            log_sum_N = likelihood_N + chosen_N
            mean_D = mean_D if label_smoothing else None
            ctx.save_for_backward(hidden_ND, table_VD, labels_N, log_sum_N, mean_D)
            ctx.buffer, ctx.chunk, ctx.label_smoothing = buffer, chunk, label_smoothing
        else:
            workspace.give(buffer)
        ctx.mark_non_differentiable(likelihood_N)
        return loss_N, likelihood_N

    @staticmethod
    def backward(ctx: Any, gradient_N: torch.Tensor, _: Any) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients of the hidden states and of the table; overwrite the logits."""
        hidden_ND, table_VD, labels_N, log_sum_N, mean_D = ctx.saved_tensors
        if ctx.buffer is None:
            raise RuntimeError("the gradient of this loss can be computed only once")
        size, vocab_size = len(hidden_ND), len(table_VD)
        logits_NV = ctx.buffer[: size * vocab_size].view(size, vocab_size)
        rows, smoothing = len(ctx.chunk), ctx.label_smoothing
        # g (softmax - (1 - e) onehot) for a gradient g of the loss, with g moved into the exponent.
        shift_N1 = (log_sum_N - gradient_N.abs().log())[:, None]
        sign_N1 = gradient_N.sign()[:, None]
        positive = bool((sign_N1 >= 0).all())
        for start in range(0, size, rows):
            part = slice(start, start + rows)
            x = ctx.chunk[: min(rows, size - start)]
            torch.sub(logits_NV[part], shift_N1[part], out=x).exp_()
            if not positive:
                x.mul_(sign_N1[part])
            label_indices = torch.arange(len(x), device=x.device), labels_N[part]
            x[label_indices] -= (1 - smoothing) * gradient_N[part]
            logits_NV[part] = x
        hidden_gradient_ND = product(logits_NV, table_VD)
        table_gradient_VD = product(logits_NV.t(), hidden_ND)
        if smoothing:
            factor_N = (gradient_N * smoothing).to(hidden_ND.dtype)
            hidden_gradient_ND.addr_(factor_N, mean_D, alpha=-1)
            table_gradient_VD.sub_((factor_N @ hidden_ND) / vocab_size)
        workspace.give(ctx.buffer)
        ctx.buffer = ctx.chunk = None
        return hidden_gradient_ND, table_gradient_VD, None, None


def chunk_rows(hidden: torch.Tensor, vocab_size: int) -> int:
    """Return the number of tokens whose logits are processed at a time."""
    return max(1, _CHUNK // vocab_size) if hidden.device.type == "cpu" else 2048


def real_tokens(labels_BT: torch.Tensor, pad_id: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the labels (N,), and on a CPU the indices of those that are not padding.

    None instead of indices: use all labels.
    """
    labels_N = labels_BT.reshape(-1).long()
    if labels_N.device.type != "cpu":
        return labels_N.clamp(min=0), None
    (real_M,) = torch.nonzero(labels_N != pad_id, as_tuple=True)
    return labels_N, real_M if len(real_M) < len(labels_N) else None


def at_all_places(
    results: Sequence[torch.Tensor], labels_BT: torch.Tensor, real_M: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """Return results (M,) at real tokens in the shape of the labels, with zeros for padding."""
    if real_M is not None:
        size = labels_BT.numel()
        results = [x.new_zeros(size).index_copy(0, real_M, x) for x in results]
    return tuple(x.view(labels_BT.shape) for x in results)


def projected_cross_entropy(
    hidden_BTD: torch.Tensor,
    table_VD: torch.Tensor,
    labels_BT: torch.Tensor,
    label_smoothing: float,
    pad_id: int,
) -> tuple[torch.Tensor, ...]:
    """Kernel of `backend.projected_cross_entropy`; on a CPU it also skips padding in products."""
    hidden_ND = hidden_BTD.reshape(-1, hidden_BTD.shape[-1])
    labels_N, real_M = real_tokens(labels_BT, pad_id)
    if real_M is not None:
        hidden_ND, labels_N = hidden_ND.index_select(0, real_M), labels_N[real_M]
    results = ProjectedCrossEntropy.apply(hidden_ND, table_VD, labels_N, label_smoothing)
    return at_all_places(results, labels_BT, real_M)
