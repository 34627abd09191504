"""Greedy search over tables of probabilities, against plain Python."""

import hypothesis
import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import beam_search, greedy_search
from keras_transformer.search import Generation, Search
from tests.backends import cases
from tests.decoding.tables import (
    EOS,
    GARDEN_PATH,
    HISTORIES,
    LENGTH,
    NONE_TWICE,
    VOCABULARY,
    A,
    B,
    C,
    assert_found,
    examples,
    follow,
    ids_of,
    limits,
    log_probs_of,
    naive_beam_search,
    random_tables,
    searcher,
    seeds,
)


def test_greedy_takes_the_most_probable_token_each_time():
    ids, scores = searcher(greedy_search)(GARDEN_PATH, np.array([4]))
    assert ids.tolist() == [[[A, A, A, EOS]]]
    np.testing.assert_allclose(scores, [[np.log(0.5 * 0.3 * 0.3 * 0.2)]], rtol=1e-5)


OPTIONS = [
    {},
    dict(length_penalty=0.6, min_length=2, banned_ids=(C,)),
    dict(length_penalty=0.6, constraint=NONE_TWICE),
    dict(length_penalty=0.6, min_length=1, eos_ids=(EOS, C)),
    dict(no_repeat_ngram_size=1),
]


@pytest.mark.parametrize("options", cases(OPTIONS, *OPTIONS[2:3]), ids=str)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_greedy_search_equals_the_naive_one_and_a_beam_of_one(options, seed, max_lengths):
    tables = random_tables(seed)
    ids, scores = searcher(greedy_search, **options)(tables, max_lengths)
    for row, limit in enumerate(max_lengths):
        expected = naive_beam_search(log_probs_of(tables[row]), limit, **options)
        assert_found(ids[row], scores[row], expected, options.get("eos_ids", (EOS,)))
    beam = searcher(beam_search, beam_size=1, **{"length_penalty": 0.0, **options})
    beam_ids, beam_scores = beam(tables, max_lengths)
    np.testing.assert_array_equal(beam_ids, ids)
    np.testing.assert_allclose(beam_scores, scores, atol=1e-5)


@pytest.mark.parametrize("in_prompt,expected", [((), (A, B, C, EOS)), ((B,), (A, C, EOS))])
@pytest.mark.parametrize("search", cases([greedy_search, beam_search], beam_search))
def test_tokens_of_the_prompt_and_of_the_output_are_penalized(search, in_prompt, expected):
    """The logits are the same at each step, so that without a penalty A would follow A."""
    table = np.zeros((1, HISTORIES, VOCABULARY), "float32")
    table[..., [A, B, C, EOS]] = 4.0, 3.0, 2.0, 1.0
    ids, _ = search(
        **follow(ops.convert_to_tensor(table)),
        search=Generation(repetition_penalty=100.0),
        eos_ids=(EOS,),
        length=LENGTH,
        max_lengths_B=ops.convert_to_tensor([LENGTH], "int32"),
        past_BP=ops.convert_to_tensor([[-1, *in_prompt]], "int32"),
    )
    assert ids_of(ops.convert_to_numpy(ids)[0, 0]) == expected


def test_a_chooser_gets_the_random_number_of_its_row_and_place():
    """A chooser that turns its number into a token writes the numbers into the output."""
    numbers = np.array([[A, B, C, A], [C, C, B, A]], "float32")
    ids, _ = greedy_search(
        **follow(ops.convert_to_tensor(random_tables(0), "float32")),
        search=Search(length_penalty=0.0),
        eos_ids=(EOS,),
        length=LENGTH,
        max_lengths_B=ops.convert_to_tensor([4, 3], "int32"),
        choose=lambda log_probs_BV, uniform_B: ops.cast(uniform_B, "int32"),
        uniforms_BL=ops.convert_to_tensor(numbers),
    )
    found = [ids_of(row) for row in ops.convert_to_numpy(ids)[:, 0]]
    assert found == [(A, B, C, EOS), (C, C, EOS)]
