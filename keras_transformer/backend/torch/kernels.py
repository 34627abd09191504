"""Kernels for PyTorch, where Keras's plain ones read and write memory too often.

On a CPU most of a training step beside its matmuls is memory traffic. `backend` calls these; each
is tested against the plain formula.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import torch
from keras import ops

from keras_transformer.backend import private
from keras_transformer.backend.chunked import Pattern

_CHUNK = 1 << 19  # logits that are worked on at a time: 2 MiB in float32, which stays in cache

# PyTorch multiplies float32 matrices with Intel's library. On AMD's processors that one leaves a
# fifth of the speed to oneDNN, half with few rows; on Intel's it is the faster with few rows.
_FEW_ROWS, _LARGE = 8, 1 << 16


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return False


_BY_ONEDNN = _is_amd() and torch.backends.mkldnn.is_available()


@functools.cache
def computes_bfloat16() -> bool:
    """Whether the processor has units for bfloat16: oneDNN refuses a product where it has none."""
    x = torch.ones((2, 2), dtype=torch.bfloat16, device="cpu")
    try:
        private.onednn_linear(x, x)
    except RuntimeError:
        return False
    return private.LINEAR_POINTWISE is not None


def linear(
    x: torch.Tensor,
    kernel: Any,
    bias: Any,
    activation: Callable | None,
    transposed: bool,
) -> tuple[torch.Tensor, Callable | None]:
    """As `backend.linear`; gives the result, and the activation if that is still to be done."""
    x_ND = x.reshape(-1, x.shape[-1])
    relu = activation is keras.activations.relu and bias is not None
    packed = None
    if torch.is_grad_enabled() and x.device.type == "cpu" and bias is not None and not transposed:
        x_NF = Linear.apply(x_ND, _tensor(kernel), _tensor(bias), relu)
        return x_NF.view(*x.shape[:-1], -1), None if relu else activation
    if torch.is_grad_enabled() or not isinstance(kernel, keras.Variable):
        kernel = ops.convert_to_tensor(kernel).to(x.dtype)
        kernel_DF = kernel.t() if transposed else kernel
        bias = None if bias is None else ops.convert_to_tensor(bias).to(x.dtype)
    else:
        kernel_DF, packed = _kept(kernel, x.dtype, _transposed if transposed else _plain)
        bias = None if bias is None else _kept(bias, x.dtype, torch.clone)
    if packed is not None and not _by_plain_product(x_ND, kernel_DF):
        x_NF = private.onednn_linear(x_ND, packed, bias, relu)
    elif bias is None:
        x_NF = x_ND @ kernel_DF
    else:
        x_NF = torch.addmm(bias, x_ND, kernel_DF)
        if relu:
            torch.relu_(x_NF)
    return x_NF.view(*x.shape[:-1], -1), None if relu else activation


def _by_plain_product(x_ND, kernel_DF):
    """Whether, of a weight that is also there in oneDNN's order, the plain form is the faster."""
    if x_ND.dtype != torch.float32 or len(x_ND) > _FEW_ROWS:
        return False
    return not _BY_ONEDNN or kernel_DF.numel() <= _LARGE


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of large matrices, without a gradient."""
    if _BY_ONEDNN and a.dtype == torch.float32 and a.device.type == "cpu":
        return private.onednn_linear(a, b.t())
    return a @ b


class Linear(torch.autograd.Function):
    """relu(x W + b) or x W + b on a CPU, W and b in their own type, in one pass over the result."""

    @staticmethod
    def forward(ctx, x_ND, kernel_DF, bias_F, relu):
        kernel, bias = kernel_DF.to(x_ND.dtype), bias_F.to(x_ND.dtype)
        by_onednn = x_ND.dtype == torch.bfloat16 and computes_bfloat16()
        if by_onednn or (_BY_ONEDNN and x_ND.dtype == torch.float32):
            x_NF = private.onednn_linear(x_ND, kernel.t(), bias, relu)
        else:
            x_NF = torch.addmm(bias, x_ND, kernel)
            if relu:
                x_NF.relu_()
        ctx.save_for_backward(x_ND, kernel, x_NF if relu else None)
        ctx.dtype = kernel_DF.dtype
        return x_NF

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient_NF):
        x_ND, kernel_DF, positive_NF = ctx.saved_tensors
        if positive_NF is not None:
            gradient_NF = torch.ops.aten.threshold_backward(gradient_NF, positive_NF, 0)
        needs_x, needs_kernel, needs_bias, _ = ctx.needs_input_grad
        return (
            _product(gradient_NF, kernel_DF.t()) if needs_x else None,
            _product(x_ND.t(), gradient_NF).to(ctx.dtype) if needs_kernel else None,
            gradient_NF.sum(0).to(ctx.dtype) if needs_bias else None,
            None,
        )


def int8_linear(
    x: torch.Tensor, kernel: Any, scale: Any, bias: Any, transposed: bool
) -> torch.Tensor:
    """As `backend.int8_linear`: each row of x in 8 bits by its largest number."""
    x_ND = x.reshape(-1, x.shape[-1]).float()
    largest_N1 = x_ND.abs().amax(1, keepdim=True).clamp_(min=1e-7)
    rounded_ND = (x_ND * (127 / largest_N1)).round_().to(torch.int8)
    kernel_DF = _tensor(kernel).t() if transposed else _tensor(kernel)
    x_NF = private.INT_MM(rounded_ND, kernel_DF).float().mul_(largest_N1 / 127)
    unit_F = _kept(scale, torch.float32, torch.reciprocal)
    if bias is None:
        x_NF.mul_(unit_F)
    else:
        x_NF = torch.addcmul(_kept(bias, torch.float32, torch.clone), x_NF, unit_F)
    return x_NF.to(x.dtype).view(*x.shape[:-1], -1)


def _tensor(x):
    """A variable's own tensor, not cast as Keras does in mixed precision."""
    return private.own_value(x) if isinstance(x, keras.Variable) else ops.convert_to_tensor(x)


def _kept(variable: keras.Variable, dtype: torch.dtype, make: Callable) -> Any:
    """`make(value in dtype)`, made anew only when the variable has changed."""
    value = _tensor(variable)
    version, forms = getattr(value, "_keras_transformer_forms", (None, None))
    now = private.version_of(value)
    if version is None or version != now:
        forms = {}
        value._keras_transformer_forms = now, forms
    if (dtype, make) not in forms:
        forms[dtype, make] = make(value.detach().to(dtype))
    return forms[dtype, make]


def _plain(kernel_DF):
    """A matrix and its form in oneDNN's own order, where that can be."""
    packed = None
    if kernel_DF.device.type == "cpu" and kernel_DF.dtype in (torch.float32, torch.bfloat16):
        packed = private.onednn_weight(kernel_DF.t())
    return kernel_DF, packed


def _transposed(kernel_FD):
    return _plain(kernel_FD.t())


def lookup(table: Any, ids: torch.Tensor, itself: bool) -> torch.Tensor:
    """As `backend.lookup`; `itself`: from the table in its own type, not from a cast copy."""
    table = _tensor(table) if itself else ops.convert_to_tensor(table)
    return torch.nn.functional.embedding(ids, table)


def layer_norm(x: torch.Tensor, gamma: Any, beta: Any, epsilon: float) -> torch.Tensor:
    """As `backend.layer_norm`: the kernel itself sums in float32, so no copy of x is needed."""
    if torch.is_grad_enabled() or not isinstance(gamma, keras.Variable):
        gamma, beta = ops.cast(gamma, x.dtype), ops.cast(beta, x.dtype)
    else:
        gamma, beta = _kept(gamma, x.dtype, torch.clone), _kept(beta, x.dtype, torch.clone)
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)


def dropout(x: torch.Tensor, rate: float, residual: torch.Tensor | None = None) -> torch.Tensor:
    """residual + x * mask / (1 - rate), the mask from random bytes: one for eight elements' bits.

    `torch.nn.functional.dropout` takes ten times as long on a CPU. The rate is rounded to 1/256,
    and what is kept is scaled by the rounded rate.
    """
    if x.device.type != "cpu":
        x = torch.nn.functional.dropout(x, rate)
        return x if residual is None else residual + x
    return Dropout.apply(x, residual, min(round(rate * 256), 255))


class Dropout(torch.autograd.Function):
    """residual + x * mask, the mask 0 or 256 / (256 - dropped): `dropped` of 256 are 0."""

    @staticmethod
    def forward(ctx, x, residual, dropped):
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        bytes_ = words.view(torch.uint8)[: x.numel()].view(x.shape)
        ctx.save_for_backward(bytes_)  # a quarter of the mask itself in float32
        ctx.dropped = dropped
        mask = _mask(bytes_, dropped, x.dtype)
        return x * mask if residual is None else torch.addcmul(residual, x, mask)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        (bytes_,) = ctx.saved_tensors
        mask = _mask(bytes_, ctx.dropped, gradient.dtype)
        return mask.mul_(gradient), gradient if ctx.needs_input_grad[1] else None, None


def _mask(bytes_, dropped, dtype):
    mask = torch.ge(bytes_, dropped, out=torch.empty(bytes_.shape, dtype=dtype))
    return mask.mul_(256 / (256 - dropped))


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

    The logits z exist once, in the type of `hidden`; the gradient takes their place. With label
    smoothing e the loss is log Z - z[label] + e (z[label] - mean(z)), and mean(z) is the product of
    `hidden` and the table's mean row: what smoothing adds is vectors, not matrices of logits. Only
    the first result has a gradient, which can be taken once.
    """

    @staticmethod
    def forward(ctx, hidden_ND, table_VD, labels_N, label_smoothing):
        size, vocab_size = len(hidden_ND), len(table_VD)
        buffer = _workspace.take(size * vocab_size, hidden_ND)
        logits_NV = buffer[: size * vocab_size].view(size, vocab_size)
        torch.mm(hidden_ND, table_VD.t(), out=logits_NV)
        rows = _rows(hidden_ND, vocab_size)
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
            # Of the table's rows, by a product: `mean` would copy them all to float32.
            mean_D = table_VD.new_ones((1, vocab_size)).mm(table_VD)[0] / vocab_size
            mean_N = (hidden_ND @ mean_D).float()
            loss_N += label_smoothing * (chosen_N - mean_N)
        if any(ctx.needs_input_grad):
            log_sum_N = likelihood_N + chosen_N
            mean_D = mean_D if label_smoothing else None
            ctx.save_for_backward(hidden_ND, table_VD, labels_N, log_sum_N, mean_D)
            ctx.buffer, ctx.chunk, ctx.label_smoothing = buffer, chunk, label_smoothing
        else:
            _workspace.give(buffer)
        ctx.mark_non_differentiable(likelihood_N)
        return loss_N, likelihood_N

    @staticmethod
    def backward(ctx, gradient_N, _):
        hidden_ND, table_VD, labels_N, log_sum_N, mean_D = ctx.saved_tensors
        if ctx.buffer is None:
            raise RuntimeError("the gradient of this loss can be taken once only")
        size, vocab_size = len(hidden_ND), len(table_VD)
        logits_NV = ctx.buffer[: size * vocab_size].view(size, vocab_size)
        rows, smoothing = len(ctx.chunk), ctx.label_smoothing
        # g (softmax - (1 - e) onehot), the factor g inside the exponent.
        shift_N1 = (log_sum_N - gradient_N.abs().log())[:, None]
        sign_N1 = gradient_N.sign()[:, None]
        positive = bool((sign_N1 >= 0).all())
        for start in range(0, size, rows):
            part = slice(start, start + rows)
            x = ctx.chunk[: min(rows, size - start)]
            torch.sub(logits_NV[part], shift_N1[part], out=x).exp_()
            if not positive:
                x.mul_(sign_N1[part])
            own = torch.arange(len(x), device=x.device), labels_N[part]
            x[own] -= (1 - smoothing) * gradient_N[part]
            logits_NV[part] = x
        hidden_gradient_ND = _product(logits_NV, table_VD)
        table_gradient_VD = _product(logits_NV.t(), hidden_ND)
        if smoothing:
            factor_N = (gradient_N * smoothing).to(hidden_ND.dtype)
            hidden_gradient_ND.addr_(factor_N, mean_D, alpha=-1)
            table_gradient_VD.sub_((factor_N @ hidden_ND) / vocab_size)
        _workspace.give(ctx.buffer)
        ctx.buffer = ctx.chunk = None
        return hidden_gradient_ND, table_gradient_VD, None, None


def _rows(hidden_ND, vocab_size):
    """Tokens whose logits are worked on at a time."""
    return max(1, _CHUNK // vocab_size) if hidden_ND.device.type == "cpu" else 2048


def projected_cross_entropy(hidden_BTD, table_VD, labels_BT, label_smoothing, pad_id):
    """As `backend.projected_cross_entropy`; on a CPU the padding is left out of the matmuls too."""
    hidden_ND, labels_N = hidden_BTD.reshape(-1, hidden_BTD.shape[-1]), labels_BT.reshape(-1).long()
    if hidden_ND.device.type != "cpu":
        labels_N = labels_N.clamp(min=0)
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


def attention(
    query_BNTH: torch.Tensor,
    key_BNSH: torch.Tensor,
    value_BNSH: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
    causal: bool = False,
) -> torch.Tensor:
    """As `backend.attention`, by the way that is fastest here; `causal` without mask and bias.

    On a CPU the backward pass of PyTorch's fused kernel is slow in 16 bits (PyTorch 2.13: seven
    times as slow as matmul, softmax, matmul at 32 tokens, five times at 128).
    """
    dtype = query_BNTH.dtype
    bias = None if bias is None else bias.to(dtype)
    if mask is not None and mask.dtype != torch.bool:
        bias = mask.to(dtype) if bias is None else bias + mask
    elif mask is not None:
        # Finite, so that a row without any key stays a number; -1e9 overflows float16.
        lowest = -3e4 if dtype == torch.float16 else -1e9
        bias = torch.where(mask, 0.0 if bias is None else bias, lowest).to(dtype)
    on_cpu = query_BNTH.device.type == "cpu"
    if on_cpu and not torch.is_grad_enabled():  # by name: to choose among kernels takes time, too
        kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        # It takes for granted what its callers in PyTorch see to.
        inputs = (query_BNTH, key_BNSH, value_BNSH)
        inputs = (x if x.stride(-1) == 1 else x.contiguous() for x in inputs)
        return kernel(*inputs, is_causal=causal, attn_mask=bias)[0]
    if not on_cpu or dtype == torch.float32:
        return torch.nn.functional.scaled_dot_product_attention(
            query_BNTH, key_BNSH, value_BNSH, attn_mask=bias, is_causal=causal
        )
    if causal:
        allowed = Pattern(causal=True).mask(query_BNTH.shape[2], key_BNSH.shape[2])
        bias = torch.where(allowed, 0.0, -3e4 if dtype == torch.float16 else -1e9).to(dtype)
    B, N, T, H = query_BNTH.shape
    S = key_BNSH.shape[2]
    query, key, value = (x.reshape(B * N, -1, H) for x in (query_BNTH, key_BNSH, value_BNSH))
    if bias is None:
        logits = torch.bmm(query * H**-0.5, key.transpose(1, 2))
    else:
        bias = bias.expand(B, N, T, S).reshape(B * N, T, S)
        logits = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=H**-0.5)
    return torch.bmm(logits.softmax(dim=-1), value).view(B, N, T, H)
