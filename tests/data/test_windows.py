"""Windows of texts and packed documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.ragged import Ragged
from keras_transformer.data.windows import NO_LABEL, PackedRows, Windows, packed


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

    windows = Windows(np.arange(26), length=2, rows=1)
    spread = windows.consecutive(most=4)[0]["token_ids"][:, 0]
    assert spread.tolist() == [0, 6, 14, 22] and windows.consecutive(12)[1].shape == (12, 2)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=12), st.integers(1, 9), st.integers(0, 3))
def test_windows_over_documents_keep_them_apart(sizes, length, step):
    documents = np.repeat(np.arange(len(sizes)), sizes)  # each id is the number of its document
    if len(documents) <= length:
        return
    windows = Windows(documents, length, 6, starts=np.cumsum([0, *sizes[:-1]]))
    for inputs, labels in (windows.batch(step), windows.consecutive()):
        ids, segments = inputs["token_ids"], inputs["segments"]
        assert segments.dtype == np.int32 and np.all(segments[:, 0] == 1)
        np.testing.assert_array_equal(segments, 1 + ids - ids[:, :1])
        # A label is the next token, unless that is of another document.
        assert np.all((labels == ids) | (labels == NO_LABEL))
        np.testing.assert_array_equal(labels[:, :-1] == NO_LABEL, ids[:, 1:] != ids[:, :-1])


def test_mapped_files_are_not_copied(tmp_path):
    np.arange(100, dtype="int32").tofile(tmp_path / "ids")
    mapped = np.memmap(tmp_path / "ids", "int32", mode="r")
    assert np.shares_memory(Windows(mapped, 8, 2, starts=[0, 50]).ids, mapped)


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


def rows_of(inputs, labels):
    """The documents in a batch: the first id of each and its labels."""
    for ids, segments, row in zip(inputs["token_ids"], inputs["segments"], labels, strict=True):
        for number in range(1, segments.max() + 1):
            here = segments == number
            yield int(ids[here][0]), row[here].tolist()


@given(st.lists(st.integers(2, 10), min_size=1, max_size=20), st.integers(1, 4))
def test_each_pass_has_every_document_once(sizes, rows):
    documents = Ragged.pack([np.arange(size) + 100 * i for i, size in enumerate(sizes)])
    packed_rows = PackedRows(documents, 9, rows, seed=5)
    count = len(packed_rows._places)
    assert (len(packed_rows) - 1) * rows < count <= len(packed_rows) * rows
    batches = [packed_rows.batch(step) for step in range(-(-3 * count // rows))]
    assert all(labels.shape == (rows, 9) for _, labels in batches)
    inputs = {name: np.concatenate([x[name] for x, _ in batches]) for name in batches[0][0]}
    labels = np.concatenate([labels for _, labels in batches])
    for epoch in range(3):
        part = slice(epoch * count, (epoch + 1) * count)
        found = rows_of({name: x[part] for name, x in inputs.items()}, labels[part])
        assert sorted([first, *rest] for first, rest in found) == [x.tolist() for x in documents]
    # A batch is a function of the seed and the step.
    again = PackedRows(documents, 9, rows, seed=5).batches(2)
    np.testing.assert_array_equal(next(again)[1], packed_rows.batch(2)[1])


def test_only_what_counts_has_a_label():
    documents = Ragged.pack([[5, 6, 7, 8], [9, 10]])
    counted = Ragged.pack([[0, 0, 1, 0], [1, 1]])
    inputs, labels = PackedRows(documents, 4, 1, counted=counted).all()
    assert sorted(rows_of(inputs, labels)) == [(5, [NO_LABEL, 7, NO_LABEL]), (9, [10])]
    assert inputs["token_ids"].tolist() == [[5, 6, 7, 9]]


def test_bad_input():
    with pytest.raises(ValueError, match=r"ids must hold more than length=8, .* got 8"):
        Windows(np.arange(8), 8, 1)
    with pytest.raises(ValueError, match="rows must be a whole number of at least 1, got 0"):
        Windows(np.arange(8), 2, 0)
    for documents in ([], [[1]]):
        with pytest.raises(ValueError, match="at least two tokens each"):
            packed(documents, 4)
    with pytest.raises(ValueError, match=r"at most length \+ 1 = 3, got 2 to 4"):
        PackedRows(Ragged.pack([[1, 2], [1, 2, 3, 4]]), 2, 1)
