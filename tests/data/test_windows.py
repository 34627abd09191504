"""Windows of a text and packed documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.windows import NO_LABEL, Windows, packed


def test_windows_are_of_the_text_and_labels_follow():
    ids = np.arange(100)
    windows = Windows(ids, length=8, rows=5, seed=3)
    inputs, labels = windows.batch(7)
    assert inputs["token_ids"].shape == labels.shape == (5, 8)
    np.testing.assert_array_equal(labels, inputs["token_ids"] + 1)
    np.testing.assert_array_equal(np.diff(inputs["token_ids"], axis=1), 1)
    np.testing.assert_array_equal(next(windows.batches(7))[1], labels)
    assert not np.array_equal(windows.batch(8)[1], labels)
    starts = [windows.batch(step)[0]["token_ids"][:, 0] for step in range(400)]
    assert np.min(starts) == 0 and np.max(starts) == 91  # the last that has its labels


def test_consecutive_windows_are_the_text():
    inputs, labels = Windows(np.arange(26), length=8, rows=1).consecutive()
    np.testing.assert_array_equal(inputs["token_ids"].ravel(), np.arange(24))
    np.testing.assert_array_equal(labels.ravel(), np.arange(1, 25))


@given(st.lists(st.integers(2, 12), min_size=1, max_size=20), st.integers(1, 9))
def test_packing_keeps_every_document(sizes, length):
    documents = [np.arange(size) + 100 * i for i, size in enumerate(sizes)]
    inputs, labels = packed(documents, length)
    found = []
    for ids, segments, row in zip(inputs["token_ids"], inputs["segments"], labels, strict=True):
        assert np.all((row == NO_LABEL) == (segments == 0))
        for number in range(1, segments.max() + 1):
            here = segments == number
            np.testing.assert_array_equal(ids[here] + 1, row[here])
            found.append([int(ids[here][0]), *row[here].tolist()])
    assert sorted(found) == [x[: length + 1].tolist() for x in documents]


def test_bad_input():
    with pytest.raises(ValueError, match=r"ids must hold more than length=8, .* got 8"):
        Windows(np.arange(8), 8, 1)
    with pytest.raises(ValueError, match="rows must be a whole number of at least 1, got 0"):
        Windows(np.arange(8), 2, 0)
    for documents in ([], [[1]]):
        with pytest.raises(ValueError, match="at least two tokens each"):
            packed(documents, 4)
