"""Prompts padded on the left, and texts cut before a stop."""

import numpy as np
import pytest

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.language.prompts import before_stop, left_padded


def test_left_padded():
    ids, segments = left_padded([[5, 6, 7], [8]], 3, pad_id=1)
    assert ids.shape == segments.shape and len(ids) == 3
    assert ids[0, -3:].tolist() == [5, 6, 7] and ids[1, -3:].tolist() == [1, 1, 8]
    assert segments[:2, -3:].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert segments[2].sum() == 1  # a row that only fills the batch sees one place


@pytest.mark.skipif(COMPILES_EACH_SHAPE, reason="there lengths are rounded up")
def test_prompts_of_one_length_need_no_padding():
    ids, segments = left_padded([[5, 6], [7, 8]], 2, pad_id=1)
    np.testing.assert_array_equal(ids, [[5, 6], [7, 8]])
    assert segments is None


def test_prompts_of_few_shapes():
    ids, segments = left_padded([[5] * 16, [7] * 16], 2, pad_id=1, few_shapes=True)
    assert ids.shape == segments.shape == (2, 16) and segments.all()
    ids, segments = left_padded([[5] * 17], 2, pad_id=1, few_shapes=True)
    assert ids.shape == (2, 32) and segments.sum(axis=1).tolist() == [17, 1]


@pytest.mark.parametrize(
    "text,stop,expected",
    [("one two", (), "one two"), ("one two", ("two", "one"), ""), ("a\nb", ("\n",), "a")],
)
def test_before_stop(text, stop, expected):
    assert before_stop(text, stop) == expected
