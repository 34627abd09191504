"""The ids that a row of a search may use, against sets in Python."""

import numpy as np
from keras import ops

from keras_transformer.decoding import allowed_ids, places_of

CANDIDATES = np.array([[0, -1], [5, 6], [6, 7], [-1, -1], [9, 3]], "int32")
FREQUENT = np.array([7, 11], "int32")
SPECIAL = (0, 2, 3)
SOURCE = np.array([[1, 2, 0], [4, 3, 0], [1, 1, 1]], "int32")


def found(*arguments):
    ids = allowed_ids(*(ops.convert_to_tensor(x) for x in (SOURCE, CANDIDATES, FREQUENT)), SPECIAL)
    if arguments:
        tensors = (ops.convert_to_tensor(x) for x in (SOURCE, CANDIDATES, FREQUENT))
        ids = allowed_ids(*tensors, SPECIAL, *map(ops.convert_to_tensor, arguments))
    return ids


def test_each_row_has_its_own_ids_once():
    ids = ops.convert_to_numpy(found())
    assert ids.dtype == np.int32
    for row, source in zip(ids.tolist(), SOURCE.tolist(), strict=True):
        expected = {x for i in source for x in CANDIDATES[i].tolist() if x >= 0}
        expected |= {*FREQUENT.tolist(), *SPECIAL}
        real = [x for x in row if x != -1]
        assert row[:3] == list(SPECIAL)
        assert len(real) == len(set(real)) and set(real) == expected


def test_placed_ids_have_the_same_places_in_rows_that_may_use_them():
    tensors = (ops.convert_to_tensor(x) for x in (SOURCE, CANDIDATES, FREQUENT))
    rows = ops.convert_to_numpy(allowed_ids(*tensors, SPECIAL, placed_ids=(9, 7, 12))).tolist()
    assert [row[3:6] for row in rows] == [[-1, 7, -1], [9, 7, -1], [-1, 7, -1]]
    for row, plain in zip(rows, ops.convert_to_numpy(found()).tolist(), strict=True):
        assert sorted(x for x in row if x >= 0) == sorted(x for x in plain if x >= 0)


def test_a_prefix_is_allowed_and_has_places():
    prefix = np.array([[8, 7], [3, 0], [12, 0]], "int32")
    ids = found(prefix)
    places = ops.convert_to_numpy(places_of(ops.convert_to_tensor(prefix), ids))
    ids = ops.convert_to_numpy(ids)
    assert places.dtype == np.int32
    np.testing.assert_array_equal(np.take_along_axis(ids, places, axis=1), prefix)
    assert places[1].tolist() == [2, 0]  # special ids keep their places
    assert 12 in ids[2] and 12 not in ids[0]
