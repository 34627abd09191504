"""Building blocks of searches against the plain formulas."""

import contextlib

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import (
    BACKEND,
    write_cache,
)

numpy = ops.convert_to_numpy


def without_gradients():
    if BACKEND == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()


@pytest.mark.parametrize("length,index", [(1, 0), (1, 4), (3, 1)])
@pytest.mark.parametrize("context", [contextlib.nullcontext, without_gradients])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_write_cache(rng, length, index, context, as_tensor):
    cache, update = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((2, 3, length, 4))
    expected = cache.copy()
    expected[:, :, index : index + length] = update
    place = ops.convert_to_tensor(index, dtype="int32") if as_tensor else index
    with context():
        actual = write_cache(ops.convert_to_tensor(cache), ops.convert_to_tensor(update), place)
    written = index + length  # what comes after may be dropped
    np.testing.assert_allclose(numpy(actual)[:, :, :written], expected[:, :, :written], rtol=1e-6)
