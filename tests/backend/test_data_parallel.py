"""Replicas where there is one; `tests/distribution/test_mirrored.py` has two."""

from keras import ops

from keras_transformer.backend import (
    num_replicas,
    replica_number,
    replica_sum,
    replica_sums,
    with_rows,
)


def test_one_replica():
    x = ops.ones((2, 3))
    assert num_replicas() == 1 and replica_number() == 0
    assert replica_sum(x) is x
    assert replica_sums([x, x]) == [x, x]
    assert with_rows((x, None)) == (x, None)
