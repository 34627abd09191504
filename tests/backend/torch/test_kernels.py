"""PyTorch's attention: tensors of any strides, and the kernel that a GPU computes it with."""

import keras
import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from keras_transformer.backend.torch import kernels as torch_kernels


def test_attention_takes_any_strides(rng):
    """Return tensors whose strides differ from those of their neighbours."""
    query, key, value = (torch.tensor(x) for x in rng.standard_normal((3, 2, 5, 4, 2)))
    expected = torch_kernels.attention(*(x.contiguous() for x in (query, key, value)), None, None)
    with torch.no_grad():
        strided = query.transpose(2, 3).contiguous().transpose(2, 3)
        assert strided.stride(-1) != 1
        found = torch_kernels.attention(strided, key, value, None, None)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("masked", ["", "boolean", "added", "causal"])
def test_many_short_sequences(masked, dtype, threads, rng):
    """By products or in one kernel, with gradients or without, it is the same attention."""
    query, key, value = (
        torch.tensor(x, dtype=torch.float64) for x in rng.standard_normal((3, 8, 4, 5, 16))
    )
    allowed = torch.tensor(rng.random((8, 1, 5, 5)) < 0.6) | torch.eye(5, dtype=torch.bool)
    if masked == "causal":
        allowed = torch.ones(5, 5, dtype=torch.bool).tril()
    numbers = torch.where(allowed, 0.0, -1e9) if masked else None
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, numbers)
    mask = {"boolean": allowed, "added": numbers}.get(masked)
    inputs = [x.to(getattr(torch, dtype)).requires_grad_() for x in (query, key, value)]
    with keras.device("cpu"):
        found = torch_kernels.attention(*inputs, mask, None, masked == "causal")
    tolerance = 1e-5 if dtype == "float32" else 0.05
    np.testing.assert_allclose(found.detach().double(), expected, atol=tolerance)
    with torch.no_grad(), keras.device("cpu"):
        alone = torch_kernels.attention(*inputs, mask, None, masked == "causal")
    np.testing.assert_allclose(alone.double(), expected, atol=tolerance)
    if dtype == "float32":
        (gradient,) = torch.autograd.grad(found.sum(), inputs[1:2])
        key.requires_grad_()
        again = torch.nn.functional.scaled_dot_product_attention(query, key, value, numbers)
        (own,) = torch.autograd.grad(again.sum(), key)
        np.testing.assert_allclose(gradient, own, atol=1e-4)


class Kernels(TorchDispatchMode):
    """Records the attention kernels that are called, by the name of their operation."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        name = function.overloadpacket.__name__
        if "attention" in name:
            self.names.add(name)
        return function(*arguments, **(options or {}))


def kernels_of(device, dtype, queries, keys, masked, causal, training):
    """Return the attention kernels that the forward and, in training, backward pass call."""
    query, key, value = (
        torch.randn(2, 4, length, 32, device=device, dtype=dtype, requires_grad=training)
        for length in (queries, keys, keys)
    )
    mask = torch.zeros(2, 1, 1, keys, device=device, dtype=dtype) if masked else None
    with Kernels() as called, torch.set_grad_enabled(training):
        found = torch_kernels.attention(query, key, value, mask, None, causal)
        if training:
            found.sum().backward()
    return called.names


PLACES = {  # queries, keys, whether padding is masked, whether causal, whether in training
    "training": (64, 64, False, True, True),
    "training, padded": (64, 64, True, False, True),
    "prefill": (64, 64, False, True, False),
    "prefill, padded": (64, 64, True, False, False),
    "step": (1, 64, False, False, False),
    "step, beams": (4, 256, True, False, False),
}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="names the kernels of a GPU")
@pytest.mark.parametrize("place", PLACES)
def test_a_gpu_computes_it_in_one_kernel(place):
    *_, masked, _, training = PLACES[place]
    called = kernels_of("cuda", torch.bfloat16, *PLACES[place])
    # PyTorch's flash attention takes no mask; its other fused kernels need as little memory.
    names = ("efficient", "cudnn") if masked else ("flash", "cudnn")
    passes = ("", "_backward") if training else ("",)
    allowed = {f"_scaled_dot_product_{x}_attention{y}" for x in names for y in passes}
    assert called and called <= allowed and len(called) == len(passes)


@pytest.mark.parametrize("place", ["prefill", "prefill, padded", "step", "step, beams"])
def test_a_processor_computes_it_in_one_kernel_without_gradients(place):
    called = kernels_of("cpu", torch.float32, *PLACES[place])
    assert called == {"_scaled_dot_product_flash_attention_for_cpu"}
