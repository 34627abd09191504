"""Dropout: its share, its scale, drawn anew each time, with a residual."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import (
    dropout,
)

numpy = ops.convert_to_numpy


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout(rate):
    x = ops.ones((400, 101))
    seed = keras.random.SeedGenerator(3)
    dropped = numpy(dropout(x, rate, seed))
    kept = dropped != 0
    np.testing.assert_allclose(1 - kept.mean(), rate, atol=0.01)
    np.testing.assert_allclose(dropped[kept], 1 / (1 - rate), rtol=5e-3)
    assert len(np.unique(dropped)) == 2
    other = numpy(dropout(x, rate, seed, residual=3 * x))
    np.testing.assert_allclose(sorted(np.unique(other)), [3, 3 + 1 / (1 - rate)], rtol=5e-3)
    assert ((other > 3) != kept).any()  # drawn anew
