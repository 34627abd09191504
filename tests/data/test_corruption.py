"""Span corruption: nothing is lost, the shares are those of the paper, and bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.data.corruption import SpanCorruption, corrupted

SENTINELS = tuple(range(999, 899, -1))
CORRUPTION = SpanCorruption(SENTINELS)


def put_back(source, target):
    """The text again: each sentinel of the source replaced by what follows it."""
    spans, own = {}, None
    for token in target[:-1]:
        if token in SENTINELS:
            own = spans.setdefault(token, [])
        else:
            own.append(token)
    return [x for token in source[:-1] for x in spans.get(token, [token])], spans


@given(st.integers(2, 400), st.integers(0, 99))
def test_nothing_is_lost(length, seed):
    ids = list(range(5, 5 + length))
    source, target = CORRUPTION(ids, np.random.default_rng(seed))
    again, spans = put_back(source, target)
    assert again == ids
    assert source[-1] == target[-1] == 1
    assert list(spans) == list(SENTINELS[: len(spans)])
    assert all(spans.values())
    taken = sum(map(len, spans.values()))
    assert taken == max(1, round(0.15 * length))
    assert len(spans) == max(1, round(taken / 3))
    assert source[0] not in SENTINELS


def test_places_and_lengths_are_drawn():
    found = [CORRUPTION(list(range(5, 105)), np.random.default_rng(seed)) for seed in range(300)]
    lengths = [len(span) for pair in found for span in put_back(*pair)[1].values()]
    assert np.mean(lengths) == pytest.approx(3.0)
    assert min(lengths) == 1 and max(lengths) >= 7
    assert len({tuple(source) for source, _ in found}) == 300
    again = CORRUPTION(list(range(5, 105)), np.random.default_rng(7))
    assert again == found[7]


def test_rows_for_teacher_forcing():
    windows = np.arange(5, 165).reshape(4, 40)
    inputs, labels = corrupted(windows, CORRUPTION, np.random.default_rng(0), bos_id=2)
    assert inputs["source_ids"].shape == (4, 37) and labels.shape == (4, 9)  # 6 of 40, in 2 spans
    for row in range(4):
        again, _ = put_back(inputs["source_ids"][row].tolist(), labels[row].tolist())
        assert again == windows[row].tolist()
    assert (inputs["target_ids"][:, 0] == 2).all()
    np.testing.assert_array_equal(inputs["target_ids"][:, 1:], labels[:, :-1])


def test_bad_input():
    for options, message in (
        (dict(rate=0.0), r"rate must be in \(0, 1\), got 0.0"),
        (dict(mean_length=0.5), "mean_length must be at least 1, got 0.5"),
        (dict(sentinel_ids=()), "sentinel_ids must be one or more"),
    ):
        with pytest.raises(ValueError, match=message):
            SpanCorruption(**dict(sentinel_ids=SENTINELS) | options)
    with pytest.raises(ValueError, match="ids must hold two tokens or more, got 1"):
        CORRUPTION([5], np.random.default_rng(0))
    with pytest.raises(
        ValueError, match="sentinel_ids must hold at least 5 for a text of 100 .*, got 2"
    ):
        SpanCorruption(SENTINELS[:2])(list(range(100)), np.random.default_rng(0))
