"""Occurrences of pairs in an epoch: whole numbers, fractions, wrong numbers."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.data.visits import Visits

SAME = [np.full(10, 4), np.full(10, 7)]


def test_whole_numbers_are_exact_in_every_epoch():
    wanted = np.array([0, 1, 2, 3, 1, 0, 1, 2, 1, 1])
    visits = Visits(wanted.astype(float), SAME)
    expected = {i: int(x) for i, x in enumerate(wanted) if x}
    assert Counter(visits.plain.tolist()) == expected
    for seed in range(3):
        assert Counter(visits.shuffled(np.random.default_rng(seed)).tolist()) == expected


def test_pairs_of_the_same_lengths_take_turns():
    visits = Visits(np.full(10, 1.3), SAME)
    assert len(visits.plain) == 13
    totals, twice = Counter(), set()
    for seed in range(200):
        counts = Counter(visits.shuffled(np.random.default_rng(seed)).tolist())
        assert set(counts.values()) == {1, 2} and counts.total() == 13
        totals += counts
        twice |= {i for i, count in counts.items() if count == 2}
    assert twice == set(range(10))
    assert min(totals.values()) > 1.2 * 200 and max(totals.values()) < 1.4 * 200


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.25, 0.5, 1.0, 1.3, 4.0]), st.integers(1, 4), st.integers(1, 4)
        ),
        min_size=4,
        max_size=60,
    ),
    st.integers(0, 9),
)
def test_every_epoch_has_the_same_lengths_and_the_rounded_sum(pairs, seed):
    numbers, sources, targets = map(np.array, zip(*pairs, strict=True))
    visits = Visits(numbers, [sources, targets])
    shuffled = visits.shuffled(np.random.default_rng(seed))
    np.testing.assert_array_equal(sources[shuffled], sources[visits.plain])
    np.testing.assert_array_equal(targets[shuffled], targets[visits.plain])
    assert abs(len(shuffled) - numbers.sum()) <= 0.5 + 1e-9
    counts = np.bincount(shuffled, minlength=len(pairs))
    assert (abs(counts - numbers) < 1 + 1e-9).all()


@pytest.mark.parametrize("wrong", [[1.0, -0.5], [1.0, np.nan], [np.inf, 1.0], ["1", "2"]])
def test_wrong_numbers(wrong):
    with pytest.raises(ValueError, match="visits must be finite numbers of at least 0, got "):
        Visits(np.array(wrong), [np.ones(2, int)] * 2)


def test_no_pair_occurs():
    with pytest.raises(ValueError, match="visits must be large enough that a pair occurs, got "):
        Visits(np.zeros(2), [np.ones(2, int)] * 2)
