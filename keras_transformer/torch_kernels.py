"""Training kernels for PyTorch, where Keras's plain ones read and write memory too often.

On a CPU most of a training step beside its matmuls is memory traffic. `ops` calls these; each is
tested against the plain formula.
"""

from __future__ import annotations

import torch

_CHUNK = 1 << 19  # logits that are worked on at a time: 2 MiB in float32, which stays in cache


def dropout(x: torch.Tensor, rate: float, residual: torch.Tensor | None = None) -> torch.Tensor:
    """residual + x * mask / (1 - rate), the mask from random bytes: one for eight elements' bits.

    `torch.nn.functional.dropout` takes ten times as long on a CPU. The rate is rounded to 1/256,
    and what is kept is scaled by the rounded rate.
    """
    if x.device.type != "cpu":
        x = torch.nn.functional.dropout(x, rate)
        return x if residual is None else residual + x
    dropped = round(rate * 256)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    bytes_ = words.view(torch.uint8)[: x.numel()].view(x.shape)
    mask = torch.ge(bytes_, dropped, out=torch.empty(x.shape, dtype=x.dtype))
    mask.mul_(256 / (256 - dropped))
    return x * mask if residual is None else torch.addcmul(residual, x, mask)


class _Workspace:
    """Buffers that outlive a step: fresh memory costs a page fault every 4 KiB, each step anew."""

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


_workspace = _Workspace()


class ProjectedCrossEntropy(torch.autograd.Function):
    """Cross-entropy of `hidden @ table.T` a token, label-smoothed, and without smoothing.

    The logits exist once, in the type of `hidden`; the gradient takes their place. Only the first
    result has a gradient.
    """

    @staticmethod
    def forward(ctx, hidden_ND, table_VD, labels_N, label_smoothing):
        size, vocab_size = len(hidden_ND), len(table_VD)
        buffer = _workspace.take(size * vocab_size, hidden_ND)
        logits_NV = buffer[: size * vocab_size].view(size, vocab_size)
        torch.mm(hidden_ND, table_VD.t(), out=logits_NV)
        log_sums, chosen, means = [], [], []
        for rows in _chunks(size, vocab_size):
            x = logits_NV[rows].float()
            log_sums.append(torch.logsumexp(x, dim=1))
            chosen.append(x.gather(1, labels_N[rows, None])[:, 0])
            if label_smoothing:
                means.append(x.mean(dim=1))
        log_sums_N = torch.cat(log_sums)
        likelihood_N = log_sums_N - torch.cat(chosen)
        loss_N = likelihood_N
        if label_smoothing:
            loss_N = loss_N + label_smoothing * (torch.cat(chosen) - torch.cat(means))
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(hidden_ND, table_VD, labels_N, log_sums_N)
            ctx.buffer, ctx.label_smoothing = buffer, label_smoothing
        else:
            _workspace.give(buffer)
        ctx.mark_non_differentiable(likelihood_N)
        return loss_N, likelihood_N

    @staticmethod
    def backward(ctx, gradient_N, _):
        hidden_ND, table_VD, labels_N, log_sums_N = ctx.saved_tensors
        if ctx.buffer is None:
            raise RuntimeError("the gradient of this loss can be taken once only")
        size, vocab_size = len(hidden_ND), len(table_VD)
        logits_NV = ctx.buffer[: size * vocab_size].view(size, vocab_size)
        smoothing = ctx.label_smoothing
        for rows in _chunks(size, vocab_size):
            # softmax - (1 - e) onehot - e / V
            x = logits_NV[rows].float().sub_(log_sums_N[rows, None]).exp_()
            if smoothing:
                x.sub_(smoothing / vocab_size)
            x[torch.arange(len(x), device=x.device), labels_N[rows]] -= 1 - smoothing
            torch.mul(x, gradient_N[rows, None], out=x)
            logits_NV[rows] = x
        hidden_gradient_ND = logits_NV @ table_VD
        table_gradient_VD = logits_NV.t() @ hidden_ND
        _workspace.give(ctx.buffer)
        ctx.buffer = None
        return hidden_gradient_ND, table_gradient_VD, None, None


def _chunks(size, vocab_size):
    rows = max(1, _CHUNK // vocab_size) if not torch.cuda.is_available() else 1024
    return (slice(start, start + rows) for start in range(0, size, rows))


def projected_cross_entropy(hidden_BTD, table_VD, labels_BT, label_smoothing, pad_id):
    """As `ops.projected_cross_entropy`; on a CPU the padding is left out of the matmuls too."""
    hidden_ND, labels_N = hidden_BTD.reshape(-1, hidden_BTD.shape[-1]), labels_BT.reshape(-1).long()
    if hidden_ND.device.type != "cpu":
        both = ProjectedCrossEntropy.apply(hidden_ND, table_VD, labels_N, label_smoothing)
        return [x.view(labels_BT.shape) for x in both]
    (real_M,) = torch.nonzero(labels_N != pad_id, as_tuple=True)
    if len(real_M) < len(labels_N):
        hidden_ND, labels_N = hidden_ND.index_select(0, real_M), labels_N[real_M]
    both = ProjectedCrossEntropy.apply(hidden_ND, table_VD, labels_N, label_smoothing)
    if len(real_M) == labels_BT.numel():
        return [x.view(labels_BT.shape) for x in both]
    return [
        x.new_zeros(labels_BT.numel()).index_copy(0, real_M, x).view(labels_BT.shape) for x in both
    ]


def attention(query_BNTH, key_BNSH, value_BNSH, mask, bias):
    """softmax(Q K^T / sqrt(H) + bias) V, by the way that is fastest here.

    On a CPU the backward pass of PyTorch's fused kernel is slow in 16 bits (PyTorch 2.13: seven
    times as slow as matmul, softmax, matmul at 32 tokens, five times at 128).
    """
    dtype = query_BNTH.dtype
    bias = None if bias is None else bias.to(dtype)
    if mask is not None:
        # Finite, so that a row without any key stays a number; -1e9 overflows float16.
        lowest = -3e4 if dtype == torch.float16 else -1e9
        base = bias if bias is not None else torch.zeros((), dtype=dtype, device=mask.device)
        bias = torch.where(mask, base, lowest)
    slow = query_BNTH.device.type == "cpu" and dtype != torch.float32 and torch.is_grad_enabled()
    if not slow:
        return torch.nn.functional.scaled_dot_product_attention(
            query_BNTH, key_BNSH, value_BNSH, attn_mask=bias
        )
    B, N, T, H = query_BNTH.shape
    S = key_BNSH.shape[2]
    query, key, value = (x.reshape(B * N, -1, H) for x in (query_BNTH, key_BNSH, value_BNSH))
    if bias is None:
        logits = torch.bmm(query * H**-0.5, key.transpose(1, 2))
    else:
        bias = bias.expand(B, N, T, S).reshape(B * N, T, S)
        logits = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=H**-0.5)
    return torch.bmm(logits.softmax(dim=-1), value).view(B, N, T, H)
