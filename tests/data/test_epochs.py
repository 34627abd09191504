"""Epochs over buckets: each row once, in an order of the seed."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from keras_transformer.data.buckets import Buckets
from keras_transformer.data.epochs import Epochs

LENGTHS = np.random.default_rng(0).integers(1, 40, 300)


def epochs(shuffle=True, seed=0):
    return Epochs(Buckets(LENGTHS, LENGTHS, 200, 4, 40), shuffle, seed)


@pytest.mark.parametrize("shuffle", [True, False])
def test_each_epoch_has_each_row_once(shuffle):
    own = epochs(shuffle)
    for epoch in range(2):
        steps = range(epoch * len(own), (epoch + 1) * len(own))
        rows = np.concatenate([own.rows(step)[0] for step in steps])
        assert sorted(rows.tolist()) == list(range(len(LENGTHS)))


def test_a_batch_holds_its_rows():
    own = epochs()
    for step in range(len(own)):
        rows, S, T = own.rows(step)
        assert S == T >= LENGTHS[rows].max()
        assert len(rows) * S <= 200


def test_the_order_is_of_seed_and_epoch():
    own = epochs()
    first = [own.rows(step)[0].tolist() for step in range(2 * len(own))]
    again = copy.deepcopy(own)  # as for another process: without the plan
    assert [again.rows(step)[0].tolist() for step in range(2 * len(own))] == first
    assert first[: len(own)] != first[len(own) :]
    other = epochs(seed=1)
    assert [other.rows(step)[0].tolist() for step in range(len(own))] != first[: len(own)]
    plain = epochs(shuffle=False)
    assert plain.rows(0)[0].tolist() == plain.rows(len(plain))[0].tolist()
