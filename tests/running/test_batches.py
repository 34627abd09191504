"""Batches of texts of similar lengths, and ids up to the end of a text."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from keras_transformer.running.batches import search_batches, until_end

pytestmark = pytest.mark.once("numbers and lists")
MAX_LENGTH = 40  # not a multiple of 16, to which lengths are rounded up where shapes are compiled
texts = st.lists(st.integers(1, MAX_LENGTH), max_size=30)


@given(texts, st.integers(1, 300), st.booleans())
def test_each_text_is_in_one_batch_within_the_budget(lengths, tokens_per_batch, few):
    batches = list(search_batches(lengths, tokens_per_batch, MAX_LENGTH, few))
    assert sorted(i for chosen, _, _ in batches for i in chosen) == list(range(len(lengths)))
    for chosen, rows, length in batches:
        assert len(chosen) <= rows
        assert max(lengths[i] for i in chosen) <= length <= MAX_LENGTH
        assert rows == 1 or rows * length <= tokens_per_batch
    longest = [max(lengths[i] for i in chosen) for chosen, _, _ in batches]
    assert longest == sorted(longest, reverse=True)


@given(texts, st.booleans())
def test_shapes_are_few_on_demand(lengths, few):
    batches = search_batches(lengths, 256, MAX_LENGTH, few)
    shapes = {(rows, length) for _, rows, length in batches}
    if few:
        assert {length for _, length in shapes} <= {16, 32, MAX_LENGTH}
        assert all(rows & (rows - 1) == 0 for rows, _ in shapes)
    else:
        assert {length for _, length in shapes} <= set(lengths)


def test_workers_share_texts_that_are_worth_it():
    def sizes(num_texts, tokens_per_batch=4096):
        batches = search_batches([32] * num_texts, tokens_per_batch, MAX_LENGTH, False, 2)
        return [len(chosen) for chosen, _, _ in batches]

    assert sizes(8) == [8]
    assert sizes(24) == [12, 12]
    assert sizes(24, 64) == [2] * 12


@pytest.mark.parametrize("tokens_per_batch", [0, 1.5])
def test_a_budget_out_of_range(tokens_per_batch):
    with pytest.raises(ValueError, match=f"tokens_per_batch must be .*, got {tokens_per_batch}"):
        next(search_batches([3], tokens_per_batch, MAX_LENGTH, False))


def test_ids_before_the_first_end():
    assert until_end([5, 6, 2, 7, 3], (3, 2)) == [5, 6]
    assert until_end(np.array([5, 6]), (2,)) == [5, 6]
    assert until_end([2, 5], (2,)) == []
