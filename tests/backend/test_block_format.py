"""The form of levels in files."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend.block_format import MIDDLES, plain_levels, stored_levels


@pytest.mark.parametrize("bits", [4, 8])
def test_levels_in_files(bits, rng):
    levels = rng.integers(0, 2**bits, (3, 128)).astype("uint8")
    stored = stored_levels(levels, bits)
    assert stored.shape == (3, 128 * bits // 8) and stored.dtype == "uint8"
    np.testing.assert_array_equal(plain_levels(stored, bits), levels)
    tensors = plain_levels(ops.convert_to_tensor(stored), bits)
    np.testing.assert_array_equal(ops.convert_to_numpy(tensors), levels)


def test_four_bits_by_hand():
    levels = np.array([[1, 2, 3, 15]], "uint8")
    np.testing.assert_array_equal(stored_levels(levels, 4), [[0x31, 0xF2]])


@pytest.mark.parametrize("bits", [4, 8])
def test_a_weight_is_the_sum_over_its_nibbles(bits):
    number, factor = MIDDLES[bits]
    for level in range(2**bits):
        nibbles = [level >> 4 * i & 15 for i in range(bits // 4)]
        by_nibbles = sum(16**i * ((n - 8) * 0.5 + 0.25) for i, n in enumerate(nibbles))
        assert (level - number) * 0.5 + factor * 0.25 == by_nibbles
