"""Matrix products on PyTorch; on a CPU by oneDNN where it is faster, with bias and ReLU."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import keras
import torch
from keras import ops

from keras_transformer.backend import private
from keras_transformer.system.processor import is_amd, processor_features

# PyTorch multiplies float32 matrices with Intel's MKL. On AMD processors MKL is a fifth slower than
# oneDNN, and half as fast with few rows; on Intel processors MKL is faster with few rows. Without
# AVX-512 oneDNN copies transposed matrices first, so that gradients of weights take 1.2 to 3.3
# times as long as by MKL, those of inputs 1.0 to 1.1 times (AVX2 EPYC, two threads).
_FEW_ROWS, _LARGE = 8, 1 << 16  # rows of x; elements of a weight
_BY_ONEDNN = is_amd() and torch.backends.mkldnn.is_available()
_GRADIENTS_BY_ONEDNN = _BY_ONEDNN and "avx512f" in processor_features()
_BLOCKS = 32, 48  # columns that PyTorch's compiler computes at a time
_whole_blocks = threading.local()


@functools.cache
def computes_bfloat16() -> bool:
    """Return whether oneDNN multiplies in bfloat16: it rejects a product without units for it."""
    x = torch.ones((2, 2), dtype=torch.bfloat16, device="cpu")
    try:
        private.onednn_linear(x, x)
    except RuntimeError:
        return False
    return private.LINEAR_POINTWISE is not None


@functools.cache
def multiplies_int8() -> bool:
    """Return whether the processor sums products of 8-bit integers in 32 bits.

    Without such instructions oneDNN sums pairs of products in 16 bits, which saturates. Then 27 %
    of a small model's translations differ from those in float32; with the instructions, 9 %.
    """
    return not {"avx512_vnni", "avx_vnni", "amx_int8"}.isdisjoint(processor_features())


def linear(
    x: torch.Tensor,
    kernel: Any,
    bias: Any,
    activation: Callable | None,
    transposed: bool,
) -> tuple[torch.Tensor, Callable | None]:
    """Kernel of `backend.linear` for PyTorch: returns x W + b, and the activation still to apply.

    ReLU may be applied in the product; then the second result is None.
    """
    relu = activation is keras.activations.relu and bias is not None
    if torch.is_grad_enabled() and x.device.type == "cpu" and bias is not None and not transposed:
        x_ND = x.reshape(-1, x.shape[-1])
        x_NF = Linear.apply(x_ND, tensor_of(kernel), tensor_of(bias), relu)
        return x_NF.view(*x.shape[:-1], -1), None if relu else activation
    if torch.is_grad_enabled() or not isinstance(kernel, keras.Variable):
        kernel = ops.convert_to_tensor(kernel).to(x.dtype)
        kernel_FD = kernel if transposed else kernel.t()
        bias = None if bias is None else ops.convert_to_tensor(bias).to(x.dtype)
        if not torch.is_grad_enabled() and _by_onednn(x):
            x_NF = private.onednn_linear(x.reshape(-1, x.shape[-1]), kernel_FD, bias, relu)
            return x_NF.view(*x.shape[:-1], -1), None if relu else activation
    else:
        kernel_FD, packed = kept(kernel, x.dtype, _transposed if transposed else _plain)
        if packed is not None and not _by_plain_product(x, kernel_FD):
            x_ND = x.reshape(-1, x.shape[-1])
            bias = None if bias is None else in_dtype(bias, x.dtype)
            x_NF = private.onednn_linear(x_ND, packed, bias, relu)
            return x_NF.view(*x.shape[:-1], -1), None if relu else activation
        bias = None if bias is None else in_dtype(bias, kernel_FD.dtype)
    # One call, which also flattens the leading axes and restores them.
    same = x.dtype is kernel_FD.dtype
    y = torch.nn.functional.linear(x if same else x.to(kernel_FD.dtype), kernel_FD, bias)
    if relu:
        torch.relu_(y)
    return y if same else y.to(x.dtype), None if relu else activation


@contextlib.contextmanager
def whole_blocks() -> Iterator[None]:
    """Make `plain_linear` pad the columns of weights to whole blocks inside the context.

    If columns do not fill the last block, PyTorch's compiler stores all products twice.
    """
    before, _whole_blocks.on = getattr(_whole_blocks, "on", False), True
    try:
        yield
    finally:
        _whole_blocks.on = before


def plain_linear(x: torch.Tensor, kernel_DF: torch.Tensor) -> torch.Tensor:
    """Return x W over the last axis, in operations that other runtimes have."""
    width = kernel_DF.shape[-1]
    if not getattr(_whole_blocks, "on", False) or 0 in [width % block for block in _BLOCKS]:
        return ops.matmul(x, kernel_DF)
    filled_DF = torch.nn.functional.pad(kernel_DF, (0, -width % _BLOCKS[-1]))
    return ops.matmul(x, filled_DF)[..., :width]


def _by_plain_product(x, kernel_FD):
    """Return whether a product is faster with a plain weight than with one in oneDNN's layout."""
    if kernel_FD.dtype != torch.float32 or x.numel() > _FEW_ROWS * x.shape[-1]:
        return False
    return not _BY_ONEDNN or kernel_FD.numel() <= _LARGE


def _by_onednn(x):
    """Return whether oneDNN multiplies by matrices in PyTorch's layout faster than PyTorch."""
    if x.device.type != "cpu":
        return False
    return (
        computes_bfloat16()
        if x.dtype == torch.bfloat16
        else x.dtype == torch.float32 and _BY_ONEDNN
    )


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a @ b for large matrices of a backward pass."""
    if _GRADIENTS_BY_ONEDNN and a.dtype == torch.float32 and a.device.type == "cpu":
        return private.onednn_linear(a, b.t())
    return a @ b


class Linear(torch.autograd.Function):
    """relu(x W + b) or x W + b on a CPU, in one pass; W and b may have another dtype than x."""

    @staticmethod
    def forward(
        ctx: Any, x_ND: torch.Tensor, kernel_DF: torch.Tensor, bias_F: torch.Tensor, relu: bool
    ) -> torch.Tensor:
        kernel, bias = kernel_DF.to(x_ND.dtype), bias_F.to(x_ND.dtype)
        if _by_onednn(x_ND):
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
    def backward(ctx: Any, gradient_NF: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x_ND, kernel_DF, positive_NF = ctx.saved_tensors
        if positive_NF is not None:
            gradient_NF = torch.ops.aten.threshold_backward(gradient_NF, positive_NF, 0)
        needs_x, needs_kernel, needs_bias, _ = ctx.needs_input_grad
        return (
            product(gradient_NF, kernel_DF.t()) if needs_x else None,
            product(x_ND.t(), gradient_NF).to(ctx.dtype) if needs_kernel else None,
            gradient_NF.sum(0).to(ctx.dtype) if needs_bias else None,
            None,
        )


def int8_linear(
    x: torch.Tensor, kernel: Any, scale: Any, bias: Any, transposed: bool
) -> torch.Tensor:
    """Kernel of `backend.int8_linear`; each row of x is scaled by its largest absolute value."""
    x_ND = x.reshape(-1, x.shape[-1]).float()
    largest_N1 = x_ND.abs().amax(1, keepdim=True).clamp_(min=1e-7)
    rounded_ND = (x_ND * (127 / largest_N1)).round_().to(torch.int8)
    kernel_DF = tensor_of(kernel).t() if transposed else tensor_of(kernel)
    x_NF = private.INT_MM(rounded_ND, kernel_DF).float().mul_(largest_N1 / 127)
    unit_F = kept(scale, torch.float32, torch.reciprocal)
    if bias is None:
        x_NF.mul_(unit_F)
    else:
        x_NF = torch.addcmul(in_dtype(bias, torch.float32), x_NF, unit_F)
    return x_NF.to(x.dtype).view(*x.shape[:-1], -1)


def tensor_of(x: Any) -> torch.Tensor:
    """Return a variable's tensor without Keras's cast in mixed precision, or x as a tensor."""
    return private.own_value(x) if isinstance(x, keras.Variable) else ops.convert_to_tensor(x)


_NONE: tuple[int | None, dict[Any, Any]] = None, {}


def kept(variable: keras.Variable, dtype: torch.dtype, make: Callable) -> Any:
    """Return `make(value in dtype)`, cached until the variable changes."""
    value = tensor_of(variable)
    version, forms = getattr(value, "_keras_transformer_forms", _NONE)
    now = private.version_of(value)
    if version is None or version != now:
        forms = {}
        value._keras_transformer_forms = now, forms
    if (dtype, make) not in forms:
        forms[dtype, make] = make(value.detach().to(dtype))
    return forms[dtype, make]


def in_dtype(variable: keras.Variable, dtype: torch.dtype) -> torch.Tensor:
    """Return a variable's own tensor, or a copy in another dtype, cached as by `kept`."""
    value = tensor_of(variable)
    return value if value.dtype is dtype else kept(variable, dtype, torch.clone)


def _transposed(kernel_FD):
    """Return a matrix, and its copy in oneDNN's layout, or None if that is not available.

    With a copy, a small bfloat16 matrix is returned in float32, for products with few rows: these
    take less time than oneDNN takes to start.
    """
    packed = None
    if kernel_FD.device.type == "cpu" and kernel_FD.dtype in (torch.float32, torch.bfloat16):
        packed = private.onednn_weight(kernel_FD)
        if packed is not None and kernel_FD.numel() <= _LARGE:
            kernel_FD = kernel_FD.float()
    return kernel_FD, packed


def _plain(kernel_DF):
    return _transposed(kernel_DF.t())


def lookup(table: Any, ids: torch.Tensor, itself: bool) -> torch.Tensor:
    """Kernel of `backend.lookup`; `itself` reads the table in its own dtype, not a cast copy."""
    table = tensor_of(table) if itself else ops.convert_to_tensor(table)
    return torch.nn.functional.embedding(ids, table)
