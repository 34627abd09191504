"""PyTorch's attention with tensors of any strides."""

import numpy as np
import pytest

from keras_transformer.backend import (
    BACKEND,
)

if BACKEND != "torch":
    pytest.skip("kernels for PyTorch", allow_module_level=True)

import torch

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
