"""Caches of a search: room for positions, rings of windows, states that follow their beams."""

import numpy as np
from keras import ops

from keras_transformer.models.caches import following, with_room

numpy = ops.convert_to_numpy


def test_room_of_keys_windows_and_states(rng):
    keys = ops.convert_to_tensor(rng.standard_normal((2, 1, 5, 3)).astype("float32"))
    own = with_room({"key": keys, "value": keys}, 9, 2)
    np.testing.assert_array_equal(numpy(own["key"])[:, :, 0:10:2], numpy(keys))
    ring = with_room({"key": keys}, 9, window=3)["key"]
    # Position p is at place p modulo 3.
    np.testing.assert_array_equal(numpy(ring)[:, :, [2, 0, 1]], numpy(keys)[:, :, 2:])
    state = ops.convert_to_tensor(rng.standard_normal((2, 1, 4, 3)).astype("float32"))
    found = numpy(with_room({"state": state}, 9, 2)["state"])
    np.testing.assert_array_equal(found, np.repeat(numpy(state)[:, None], 2, axis=1))


def test_each_beam_gets_the_state_of_the_one_it_extends(rng):
    state = rng.standard_normal((1, 3, 2, 4, 3)).astype("float32")
    other = {"key": ops.zeros((1, 1, 3, 2))}
    caches = [{"self": {"state": ops.convert_to_tensor(state)}, "cross": None}, {"self": other}]
    ancestors = np.array([[[0, 2, 0, -1], [0, 0, 1, -1], [0, 2, 2, -1]]], "int32")
    found = following(caches, ops.convert_to_tensor(ancestors), 2)
    np.testing.assert_array_equal(numpy(found[0]["self"]["state"])[0], state[0, [2, 0, 2]])
    assert found[1]["self"] is other and found[0]["cross"] is None
    assert following(caches, None, 2) == caches
