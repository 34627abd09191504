"""The search that the options ask for."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import beam_search, decode, greedy_search, sampler_of, uniforms
from keras_transformer.search import Generation, Search

TABLE = np.random.default_rng(1).standard_normal((6, 6)).astype("float32")


def found(search, function=None, **options):
    """Ids of two rows of a bigram table."""
    table = ops.convert_to_tensor(TABLE)

    def step(token_ids, state, index, ancestors=None):
        return ops.take(table, token_ids, axis=0), state

    settings = dict(eos_ids=(1,), length=5, max_lengths_B=ops.convert_to_tensor([5, 4], "int32"))
    state = {"nothing": ops.zeros((2, 1))}
    run = function or decode
    ids, _ = run(step, ops.repeat(table[:1], 2, axis=0), state, search, **settings, **options)
    return ops.convert_to_numpy(ids).tolist()


@pytest.mark.parametrize(
    "search,function", [(Search(1), greedy_search), (Search(3), beam_search)], ids=["1", "3"]
)
def test_by_beam_size(search, function):
    assert found(search) == found(search, function)


def test_drawing_is_greedy_search_with_a_sampler():
    search = Search(temperature=0.7, top_k=3)
    numbers = ops.convert_to_tensor(uniforms([[1], [2]], 5))
    expected = found(search, greedy_search, choose=sampler_of(search), uniforms_BL=numbers)
    assert found(search, uniforms_BL=numbers) == expected
    assert sampler_of(Search()) is None


@pytest.mark.parametrize("beam_size,function", [(1, greedy_search), (2, beam_search)])
def test_tokens_seen_are_penalized(beam_size, function):
    past = ops.convert_to_tensor([[4], [4]], "int32")
    search = Generation(beam_size, length_penalty=3.0, repetition_penalty=9.0)
    penalized = found(search, past_BP=past)
    assert penalized == found(search, function, past_BP=past) != found(search)
