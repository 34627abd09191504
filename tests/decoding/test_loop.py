"""A search in its parts gives what it gives as a whole."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import beam_search, decoding_loop, greedy_search
from keras_transformer.search import Search
from tests.backends import cases


@pytest.mark.parametrize("beam_size", cases([1, 3], 3))
def test_a_turn_of_one_search_serves_another(beam_size, rng):
    """Length and rows are in the shapes of the arguments."""
    table_VV = rng.normal(size=(9, 9)).astype("float32")

    def step(token_ids_BK, state, index, ancestors_BKM=None):
        return ops.take(ops.convert_to_tensor(table_VV), token_ids_BK, axis=0), state

    def arguments(rows, length):
        logits_BV = ops.convert_to_tensor(rng.normal(size=(rows, 9)).astype("float32"))
        limits_B = ops.full((rows,), length, dtype="int32")
        sizes = dict(eos_ids=[3], length=length, max_lengths_B=limits_B)
        options = Search(beam_size=beam_size, length_penalty=1.0, num_hypotheses=1)
        return (step, logits_BV, {"none": limits_B}, options), sizes

    given, sizes = arguments(4, 12)
    other, other_sizes = arguments(2, 5)
    whole = (beam_search if beam_size > 1 else greedy_search)(*given, **sizes)
    loop, small = decoding_loop(*given, **sizes), decoding_loop(*other, **other_sizes)
    done, found, alive = loop.first
    for i in range(1, loop.length):
        done, found, alive = small.turn(i, done, found, alive)
    for one, part in zip(whole, small.result(found), strict=True):
        np.testing.assert_allclose(*map(ops.convert_to_numpy, (one, part)), rtol=1e-6)
