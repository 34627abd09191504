"""Packing: every pair once, none cut, no row too long, one shape, next to no padding."""

from __future__ import annotations

from random import Random

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from keras_transformer.data.packing import Packing, pack
from keras_transformer.data.pair_batches import TokenBatches

sizes = st.integers(1, 12)


@hypothesis.given(
    lengths=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=80),
    room=st.tuples(st.integers(12, 40), st.integers(12, 40)),
)
def test_every_pair_has_a_place_and_every_row_has_room(lengths, room):
    lengths, room = np.array(lengths), np.array(room)
    groups, rows = pack(lengths, room)
    assert sorted(groups.values) == sorted(rows.values) == list(range(len(lengths)))
    for group in groups:
        assert len(np.unique(lengths[group], axis=0)) == 1
    tokens = np.array([lengths[groups.values[row]].sum(axis=0) for row in rows])
    assert (tokens <= room).all()
    # Nothing that has a row fits into an earlier one.
    assert all((tokens[i] + tokens[j] > room).any() for i in range(len(tokens)) for j in range(i))
    again = pack(lengths, room)
    for one, other in zip((groups, rows), again, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.starts, other.starts)


@hypothesis.given(
    lengths=st.lists(st.tuples(sizes, sizes), min_size=1, max_size=80),
    packed_length=st.integers(12, 40),
    seed=st.integers(0, 5),
)
def test_shuffled_rows_have_every_pair_once_and_fit(lengths, packed_length, seed):
    lengths = np.array(lengths).T
    packing = Packing(lengths, [np.asarray] * 2, packed_length, 100)
    ((rows, *shape),) = packing.shapes
    assert max(shape) == packed_length and rows <= 100 // packed_length
    (shuffled,) = packing.shuffled(np.random.default_rng(seed))
    assert sorted(shuffled.values) == list(range(lengths.shape[1]))
    assert (np.array([lengths[:, row].sum(axis=1) for row in shuffled]) <= shape).all()
    (again,) = packing.shuffled(np.random.default_rng(seed))
    np.testing.assert_array_equal(shuffled.values, again.values)


class Words:
    """A token a word."""

    pad_id, bos_id, eos_id = 0, 1, 2

    def encode_source(self, texts, *, sampling=0.0, seed=None):
        random = Random(seed)

        def ids(text):
            for word in map(int, text.split()):
                yield from [word] * (2 if random.random() < sampling else 1)

        return [[*ids(text), self.eos_id] for text in texts]

    encode_target = encode_source


def captions(count, ratio=1.15):
    """Texts of distinct numbers as long as captions, the target `ratio` times the source."""
    random = Random(0)

    def text(length):
        return " ".join(str(random.randrange(3, 8000)) for _ in range(max(1, round(length))))

    lengths = [random.gauss(13, 4) for _ in range(count)]
    return [(text(n), text(n * random.gauss(ratio, 0.15))) for n in lengths]


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.4])
def test_next_to_nothing_is_padding(ratio):
    pairs = captions(2000, ratio)
    packed = TokenBatches(pairs, Words(), packed_length=128, max_length=128)
    ((_, S, T),) = packed.shapes
    assert max(S, T) == 128
    tokens = packed.num_source_tokens / packed.num_tokens  # rows are as the sides are
    assert pytest.approx(tokens, rel=0.04) == S / T
    assert packed.padding < 0.04 < TokenBatches(pairs, Words(), max_length=128).padding


def test_under_sampling_most_of_the_rows_are_still_full():
    batches = TokenBatches(captions(1000), Words(), packed_length=128, max_length=128, sampling=0.1)
    cells = filled = sampled = 0
    for step in range(len(batches)):
        _, labels = batches.batch(step)
        cells += labels.size
        filled += (labels != 0).sum()
        sampled += (labels[:, 1:] == labels[:, :-1])[labels[:, 1:] != 0].sum()
    assert filled > 0.92 * cells
    # Of words, one in ten is two tokens; a few rows would not have held that.
    assert 0.085 < sampled / (batches.num_tokens - 1000) < 0.1


def test_a_pair_has_other_mates_in_another_epoch():
    batches = TokenBatches(captions(500), Words(), packed_length=128, max_length=128)

    def mates(epoch):
        """The sets of pairs that share a row, each pair known by its labels."""
        rows = set()
        for step in range(epoch * len(batches), (epoch + 1) * len(batches)):
            inputs, labels = batches.batch(step)
            for numbers, row in zip(inputs["target_segments"], labels, strict=True):
                pairs = [tuple(row[numbers == number]) for number in range(1, numbers.max() + 1)]
                rows.add(frozenset(pairs))
        return rows

    first, second = mates(0), mates(1)
    assert len(first & second) < 0.2 * len(first)


def test_texts_longer_than_what_sampling_leaves_room_for_have_a_row_alone():
    pairs = [(" ".join(["5"] * 40), "7 8"), ("5 6", "7"), ("6 5", "8")]
    batches = TokenBatches(
        pairs, Words(), packed_length=41, max_length=41, tokens_per_batch=41, sampling=0.5
    )
    counts = [batches.batch(step)[0]["source_segments"].max() for step in range(len(batches))]
    assert sorted(counts) == [1, 2]
