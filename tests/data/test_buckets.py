"""Buckets: few shapes within the budget, and the cheapest of all ways to cut the lengths."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from keras_transformer.data.buckets import Buckets, batched
from tests.data.batches import EOS, make_batches, make_pairs


@pytest.mark.parametrize("sampling", [0.0, 0.3])
@pytest.mark.parametrize("num_buckets", [1, 3, 50])
@pytest.mark.parametrize("max_length", [13, 40])
def test_shapes_are_few_and_within_the_budget(sampling, num_buckets, max_length):
    batches = make_batches(sampling=sampling, num_buckets=num_buckets, max_length=max_length)
    assert len(batches.shapes) <= num_buckets
    assert list(batches.shapes) == sorted(batches.shapes, key=lambda shape: max(shape[1:]))
    for rows, S, T in batches.shapes:
        assert rows >= 1 and rows * max(S, T) <= 200 and max(S, T) <= max_length
    seen = set()
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        assert inputs["target_ids"].shape == labels.shape
        seen.add((*inputs["source_ids"].shape, labels.shape[1]))
    assert seen == set(batches.shapes)


@pytest.mark.parametrize("seed", range(5))
def test_buckets_are_the_cheapest_of_all_ways_to_cut(seed):
    """Every set of boundaries is tried; the cost is what the documentation of `Buckets` says."""
    random = np.random.default_rng(seed)
    pairs = [("a" * int(s), "b" * int(t)) for s, t in random.integers(0, 46, (60, 2))]
    batches = make_batches(pairs, num_buckets=3)

    def cost(shapes, sizes):
        total = 0
        for (rows, S, T), size in zip(shapes, sizes, strict=True):
            total += -(-size // rows) * (rows * (S + T) + 200)
        return total

    def up(length):
        return -(-length // 4) * 4

    lengths = [[(len(text) + 1) // 2 + 1 for text in pair] for pair in pairs]
    levels = sorted({up(max(both)) for both in lengths})
    cheapest = np.inf
    for number in range(3):
        for edges in itertools.combinations(levels[:-1], number):
            shapes, sizes = [], []
            for low, high in itertools.pairwise([0, *edges, levels[-1]]):
                inside = [both for both in lengths if low < up(max(both)) <= high]
                S, T = (up(max(side)) for side in zip(*inside, strict=True))
                room = 200 // max(S, T)
                rows = -(-len(inside) // -(-len(inside) // room))
                shapes.append((rows, S, T))
                sizes.append(len(inside))
            cheapest = min(cheapest, cost(shapes, sizes))
    counts = Counter()
    for step in range(len(batches)):
        inputs, labels = batches.batch(step)
        shape = (*inputs["source_ids"].shape, labels.shape[1])
        counts[shape] += int((labels == EOS).any(axis=1).sum())
    assert cost(counts.keys(), counts.values()) == cheapest


def test_more_buckets_mean_less_padding():
    few, many = (make_batches(make_pairs(2000), num_buckets=number) for number in (1, 6))
    assert many.padding < few.padding / 2


def buckets(lengths, tokens_per_batch=64, num_buckets=3, max_length=30):
    source, target = np.array(lengths).T
    return Buckets(source, target, tokens_per_batch, num_buckets, max_length)


def test_a_bucket_by_hand():
    # Rounded up to multiples of 4, but not beyond max_length; 64 // 12 = 5 rows at most.
    one = buckets([(5, 3), (2, 9), (8, 10), (1, 1), (4, 4), (3, 2)], num_buckets=1)
    assert one.shapes == ((3, 8, 12),)  # two batches of three rows in place of 5 + 1
    assert one.counts.tolist() == [6]
    assert buckets([(29, 30)]).shapes == ((1, 30, 30),)


@pytest.mark.parametrize(
    "count,longest,expected", [(10, 4, (1, 10)), (17, 4, (2, 9)), (3, 64, (3, 1))]
)
def test_batches_are_equally_full(count, longest, expected):
    assert batched(count, longest, 64) == expected


def test_the_generator_decides_the_order_in_a_bucket():
    lengths = np.random.default_rng(0).integers(1, 30, (100, 2))
    made = buckets(lengths)
    plain = [x.values.tolist() for x in made.shuffled(None)]
    assert sorted(itertools.chain(*plain)) == list(range(100))
    assert [len(x) for x in plain] == made.counts.tolist()
    first, again, other = (
        [x.values.tolist() for x in made.shuffled(np.random.default_rng(seed))]
        for seed in (1, 1, 2)
    )
    assert first == again != other
    assert [sorted(x) for x in first] == [sorted(x) for x in plain]
    for pairs, (_, S, T) in zip(plain, made.shapes, strict=True):
        assert (lengths[pairs] <= [S, T]).all()
