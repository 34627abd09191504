"""Ragged arrays against lists, and their copies by pickle."""

import gc
import pickle
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from keras_transformer.data.ragged import Ragged

lists = st.lists(st.lists(st.integers(0, 70_000), max_size=5), min_size=1, max_size=8)


def as_lists(ragged):
    return [ragged[i].tolist() for i in range(len(ragged))]


@given(lists)
def test_packing_and_reading(sequences):
    ragged = Ragged.pack(sequences)
    assert as_lists(ragged) == [row.tolist() for row in ragged] == sequences
    assert ragged.lengths.tolist() == [len(x) for x in sequences]


@pytest.mark.parametrize(
    "largest,dtype", [(0, "uint8"), (255, "uint8"), (256, "uint16"), (65_536, "uint32")]
)
def test_the_dtype_is_the_smallest_that_fits(largest, dtype):
    assert Ragged.pack([[0, largest], []]).values.dtype == dtype
    assert Ragged.pack([[-1, largest]]).values.dtype == "int32"


@given(st.lists(lists, min_size=1, max_size=3))
def test_joining_parts(parts):
    joined = Ragged.join([Ragged.pack(part) for part in parts])
    assert as_lists(joined) == [x for part in parts for x in part]


@given(lists, st.data())
def test_taking_and_cutting(sequences, data):
    ragged = Ragged.pack(sequences)
    indices = data.draw(st.lists(st.integers(0, len(sequences) - 1), min_size=1, max_size=9))
    assert as_lists(ragged.take(np.array(indices))) == [sequences[i] for i in indices]
    start = data.draw(st.integers(0, len(sequences) - 1))
    stop = data.draw(st.integers(start, len(sequences) + 2))
    assert as_lists(ragged.part(start, stop)) == sequences[start:stop]


def test_concatenating_neighbours():
    ragged = Ragged.pack([[1, 2], [3], [], [4, 5, 6]])
    assert as_lists(ragged.joined(np.array([0, 2, 3, 4]))) == [[1, 2, 3], [], [4, 5, 6]]


def test_shifting_and_padding():
    ragged = Ragged.pack([[5, 6, 7], [8]])
    assert as_lists(ragged.shifted(2)) == [[2, 5, 6], [2]]
    matrix = ragged.padded(3, 4, pad_id=9)
    assert matrix.dtype == "int32"
    assert matrix.tolist() == [[5, 6, 7, 9], [8, 9, 9, 9], [9, 9, 9, 9]]


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_out_of_range(index):
    with pytest.raises(IndexError, match=f"index must be from 0 to 1, got {index}"):
        Ragged.pack([[1], [2, 3]])[index]


def test_a_pickled_copy_is_mapped_into_memory():
    ragged = Ragged.pack([list(range(1000)), [], [7]])
    pickled = pickle.dumps(ragged)
    assert len(pickled) < 500
    copy = pickle.loads(pickled)
    assert isinstance(copy.values, np.memmap)
    assert as_lists(copy) == as_lists(ragged)
    folder = Path(copy.values.filename).parent
    assert folder.exists()
    del ragged
    gc.collect()
    assert not folder.exists()
