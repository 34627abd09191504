"""Masks: True = attend, and they broadcast over attention weights."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import causal_mask, padding_mask, segment_lengths, segment_mask

numpy = ops.convert_to_numpy


@pytest.mark.parametrize("pad_id", [0, 3])
def test_padding_mask_is_true_at_tokens(pad_id):
    ids = np.array([[4, 3, 0, 0], [0, 3, 5, 6]], "int32")
    mask = numpy(padding_mask(ids, pad_id))
    assert mask.shape == (2, 1, 1, 4) and mask.dtype == bool
    np.testing.assert_array_equal(mask[:, 0, 0], ids != pad_id)


def test_segment_mask_is_true_within_a_segment_and_never_at_padding():
    queries = np.array([[1, 1, 2, 0], [1, 2, 3, 3]], "int32")
    keys = np.array([[1, 2, 2, 0, 0], [1, 2, 2, 3, 0]], "int32")
    mask = numpy(segment_mask(queries, keys))
    assert mask.shape == (2, 1, 4, 5) and mask.dtype == bool
    for b, t, s in np.ndindex(2, 4, 5):
        assert mask[b, 0, t, s] == (queries[b, t] == keys[b, s] != 0)


@pytest.mark.parametrize("query_length,key_length,index", [(4, 4, 0), (1, 6, 3), (2, 7, 5)])
def test_causal_mask_sees_itself_and_what_is_before(query_length, key_length, index):
    mask = numpy(causal_mask(query_length, key_length, index))
    assert mask.shape == (1, 1, query_length, key_length) and mask.dtype == bool
    for t in range(query_length):
        for s in range(key_length):
            assert mask[0, 0, t, s] == (s <= index + t)


def test_causal_mask_takes_a_tensor_as_index():
    index = ops.convert_to_tensor(3, dtype="int32")
    np.testing.assert_array_equal(numpy(causal_mask(1, 6, index)), numpy(causal_mask(1, 6, 3)))


def test_lengths_of_segments():
    segments = np.array([[0, 1, 1, 2, 2, 2], [3, 1, 1, 1, 0, 0]], "int32")
    expected = [[0, 2, 2, 3, 3, 3], [1, 3, 3, 3, 0, 0]]
    np.testing.assert_array_equal(numpy(segment_lengths(segments)), expected)
