"""Kernels for PyTorch that read and write memory less often than the operations of Keras.

On a CPU, most of a training step outside its matmuls is memory traffic. `backend` calls these
kernels; each is tested against the plain formula.
"""

from __future__ import annotations

from typing import Any

import keras
import torch
from keras import ops

from keras_transformer.backend.chunked import Pattern
from keras_transformer.backend.torch.matrix_products import computes_bfloat16, in_dtype


def layer_norm(x: torch.Tensor, gamma: Any, beta: Any, epsilon: float) -> torch.Tensor:
    """Kernel of `backend.layer_norm` for PyTorch: sums in float32, without a float32 copy of x."""
    if torch.is_grad_enabled() or not isinstance(gamma, keras.Variable):
        cast = ops.cast
    else:
        cast = in_dtype
    beta = None if beta is None else cast(beta, x.dtype)
    return torch.nn.functional.layer_norm(x, x.shape[-1:], cast(gamma, x.dtype), beta, epsilon)


def dropout(x: torch.Tensor, rate: float, residual: torch.Tensor | None = None) -> torch.Tensor:
    """Return residual + x * mask / (1 - rate).

    On a GPU this is `torch.nn.functional.dropout`, which takes ten times as long on a CPU. There a
    64-bit random number masks eight elements: the rate is rounded to a multiple of 1/256, and kept
    elements are scaled according to the rounded rate.
    """
    if x.device.type != "cpu":
        x = torch.nn.functional.dropout(x, rate)
        return x if residual is None else residual + x
    return Dropout.apply(x, residual, min(round(rate * 256), 255))


class Dropout(torch.autograd.Function):
    """residual + x * mask; mask: 0 with probability dropped / 256, else 256 / (256 - dropped)."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, residual: torch.Tensor | None, dropped: int
    ) -> torch.Tensor:
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        bytes_ = words.view(torch.uint8)[: x.numel()].view(x.shape)
        ctx.save_for_backward(bytes_)  # a quarter of the size of a float32 mask
        ctx.dropped = dropped
        mask = _mask(bytes_, dropped, x.dtype)
        return x * mask if residual is None else torch.addcmul(residual, x, mask)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        (bytes_,) = ctx.saved_tensors
        mask = _mask(bytes_, ctx.dropped, gradient.dtype)
        return mask.mul_(gradient), gradient if ctx.needs_input_grad[1] else None, None


def _mask(bytes_, dropped, dtype):
    mask = torch.ge(bytes_, dropped, out=torch.empty(bytes_.shape, dtype=dtype))
    return mask.mul_(256 / (256 - dropped))


def attention(
    query_BNTH: torch.Tensor,
    key_BNSH: torch.Tensor,
    value_BNSH: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    causal: bool = False,
) -> torch.Tensor:
    """Kernel of `backend.attention` for PyTorch; with `causal`, mask and bias must be None.

    Device, dtype and sizes decide between PyTorch's fused kernel and separate products (matmul,
    softmax, matmul). In 16 bits on a CPU, the backward pass of the fused kernel takes seven times
    as long as that of separate products at 32 tokens, and five times at 128 (PyTorch 2.13).
    """
    dtype = query_BNTH.dtype
    bias = None if bias is None else bias.to(dtype)
    if mask is not None and mask.dtype != torch.bool:
        bias = mask.to(dtype) if bias is None else bias + mask
    elif mask is not None:
        # Finite, so that a fully masked row is not NaN; -1e9 overflows float16.
        lowest = -3e4 if dtype == torch.float16 else -1e9
        bias = torch.where(mask, 0.0 if bias is None else bias, lowest).to(dtype)
    on_cpu = query_BNTH.device.type == "cpu"
    by_products = (_are_many_and_short if on_cpu else _has_few_queries)(query_BNTH, key_BNSH)
    if on_cpu and not by_products and not torch.is_grad_enabled():
        # Called directly: `scaled_dot_product_attention` first chooses among its kernels.
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        # It requires a contiguous last axis, which `scaled_dot_product_attention` would ensure.
        inputs = (query_BNTH, key_BNSH, value_BNSH)
        rows = (x if x.stride(-1) == 1 else x.contiguous() for x in inputs)
        return kernel(*rows, is_causal=causal, attn_mask=bias)[0]
    if not by_products and (not on_cpu or dtype == torch.float32):
        return torch.nn.functional.scaled_dot_product_attention(
            query_BNTH, key_BNSH, value_BNSH, attn_mask=bias, is_causal=causal
        )
    if causal:
        allowed = Pattern(causal=True).mask(query_BNTH.shape[2], key_BNSH.shape[2])
        bias = torch.where(allowed, 0.0, -3e4 if dtype == torch.float16 else -1e9).to(dtype)
    B, N, T, H = query_BNTH.shape
    query, key, value = (x.reshape(B * N, -1, H) for x in (query_BNTH, key_BNSH, value_BNSH))
    # With beta=0, baddbmm scales the product in the same pass, and ignores its first argument.
    logits = torch.baddbmm(query.new_empty(1), query, key.transpose(1, 2), beta=0, alpha=H**-0.5)
    if bias is not None:
        logits.view(B, N, T, -1).add_(bias)
    return torch.bmm(logits.softmax(dim=-1), value).view(B, N, T, H)


def _has_few_queries(query_BNTH, key_BNSH):
    """Return whether separate products are faster on a GPU: decoding of many rows in float32.

    PyTorch's fused kernel computes 64 queries at a time. On an H200, 4 queries and 32 keys take 41
    microseconds with it and 22 with products if rows times heads are 1,024, but 10 and 11 if 128.
    """
    rows, heads, queries, _ = query_BNTH.shape
    if query_BNTH.dtype != torch.float32 or torch.is_grad_enabled():
        return False
    return rows * heads >= 256 and queries <= 8 and key_BNSH.shape[2] <= 256


def _are_many_and_short(query_BNTH, key_BNSH):
    """Return whether separate products are faster on a CPU than PyTorch's fused kernel.

    For short sequences that kernel gains nothing from a second thread or bfloat16 (PyTorch 2.13).
    128 sentences with 32 keys, 4 queries and 4 heads take 0.44 ms with it on one thread and 0.88 ms
    on two; separate products take 0.35 and 0.19 ms.
    """
    if key_BNSH.shape[2] > 128 or query_BNTH.shape[0] * query_BNTH.shape[1] < 32:
        return False
    if query_BNTH.dtype == torch.bfloat16:
        return computes_bfloat16()
    return query_BNTH.dtype == torch.float32 and torch.get_num_threads() > 1
