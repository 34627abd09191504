"""Batches of pairs of texts: each pair once an epoch, in neighbouring rows."""

import numpy as np
import pytest

from keras_transformer.data.text_pairs import TextPairBatches

pytestmark = pytest.mark.once("no tensor")

SOURCES = [[5, 6], [7], [5, 6], [8, 9, 10, 11, 12]]
TARGETS = [[20], [21, 22, 23], [24], [25]]


def test_rows_and_labels():
    batches = TextPairBatches(SOURCES, TARGETS, tokens_per_batch=64, max_length=8, num_buckets=1)
    assert len(batches) == 1
    orders = []
    for step in range(3):
        inputs, labels = batches.batch(step)
        rows = [[x for x in row if x] for row in inputs["token_ids"].tolist()]
        assert inputs["token_ids"].shape == (8, 8)
        pairs = list(zip(rows[0::2], rows[1::2], strict=True))
        assert sorted(pairs) == sorted(zip(SOURCES, TARGETS, strict=True))
        alike = np.array([[x == y for x in rows] for y in rows])
        np.testing.assert_array_equal(labels[:, None] == labels, alike)
        orders.append(pairs)
    assert any(order != orders[0] for order in orders)
    assert all(np.array_equal(*x) for x in zip(labels, batches.batch(2)[1], strict=True))


def test_both_texts_have_the_vector_of_the_teacher():
    teacher = np.arange(8, dtype="float32").reshape(4, 2)
    batches = TextPairBatches(SOURCES, TARGETS, teacher, tokens_per_batch=8, max_length=8)
    seen = []
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        for row, (one, other) in zip(
            inputs["token_ids"][1::2], labels.reshape(-1, 2, 2), strict=True
        ):
            pair = TARGETS.index([x for x in row.tolist() if x])
            np.testing.assert_array_equal(one, teacher[pair])
            np.testing.assert_array_equal(other, teacher[pair])
            seen.append(pair)
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "given, message",
    [
        (([], []), "vectors must be equal and above 0, got .0, 0, 0."),
        (([[1]], []), "must be equal and above 0, got .1, 0, 1."),
        (([[1]], [[1]], np.zeros((2, 3))), "must be equal and above 0, got .1, 1, 2."),
        (([[1]], [[]]), "tokens of a text must be from 1 to max_length=4"),
        (([[1]], [[1] * 5]), "tokens of a text must be from 1 to max_length=4"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        TextPairBatches(*given, max_length=4)
