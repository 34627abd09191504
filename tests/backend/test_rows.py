"""Caches filled to different lengths: rows written, taken, put back, copied and exchanged."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import (
    BACKEND,
    copy_row,
    is_by_row,
    most_filled,
    put_rows,
    swap_rows,
    take_rows,
)
from keras_transformer.backend.rows import write_rows


@pytest.fixture
def cache(rng):
    return rng.standard_normal((3, 2, 5, 4)).astype("float32")


def array(x):
    return ops.convert_to_numpy(x)


def test_an_index_is_a_number_or_one_for_each_row():
    assert is_by_row(ops.convert_to_tensor([1, 2]))
    assert not is_by_row(3) and not is_by_row(ops.convert_to_tensor(3))


def test_each_row_is_written_at_its_place(cache, rng):
    update = rng.standard_normal((3, 2, 2, 4)).astype("float32")
    index = np.array([0, 3, 1], "int32")
    expected = cache.copy()
    for row, place in enumerate(index):
        expected[row, :, place : place + 2] = update[row]
    written = write_rows(*map(ops.convert_to_tensor, (cache, update, index)))
    np.testing.assert_array_equal(array(written), expected)
    filled = most_filled(written, ops.convert_to_tensor(index), 2)
    assert int(filled) == 5


def test_rows_are_taken_and_put_back(cache):
    whole = ops.convert_to_tensor(cache)
    rows = take_rows(whole, 1, 2, 4)
    np.testing.assert_array_equal(array(rows)[:, :, :4], cache[1:, :, :4])
    one = np.ones((2, 2, 1, 4), "float32")
    rows = write_rows(rows, *map(ops.convert_to_tensor, (one, np.array([2, 0], "int32"))))
    expected = cache.copy()
    expected[1, :, 2], expected[2, :, 0] = 1, 1
    np.testing.assert_array_equal(array(put_rows(whole, rows, 1)), expected)


def test_rows_are_copied_and_exchanged(cache):
    expected = cache.copy()
    expected[2, :, :3] = cache[0, :, :3]
    if BACKEND != "torch":  # the others move whole rows
        expected[2] = cache[0]
    copied = copy_row(ops.convert_to_tensor(cache.copy()), 0, 2, 3)
    np.testing.assert_array_equal(array(copied), expected)
    swapped = swap_rows(ops.convert_to_tensor(cache.copy()), 0, 2, 5)
    np.testing.assert_array_equal(array(swapped), cache[[2, 1, 0]])
