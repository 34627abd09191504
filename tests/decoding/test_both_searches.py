"""Properties of greedy and beam search alike: prefixes, limits, batches, the end of the loop."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import IMPOSSIBLE, beam_search, greedy_search
from keras_transformer.decoding import loop as loop_module
from keras_transformer.search import Search
from tests.backends import cases
from tests.decoding.tables import (
    EOS,
    LENGTH,
    PAD,
    A,
    B,
    C,
    asked,
    assert_found,
    examples,
    follow,
    ids_of,
    language,
    limits,
    log_probs_of,
    naive_beam_search,
    random_tables,
    searcher,
    seeds,
)

PREFIXES = [(), (A,), (C, B), (B, A)]


@pytest.mark.parametrize("function,beam_size", [(greedy_search, 1), (beam_search, 3)])
@examples
@hypothesis.given(seed=seeds, prefixes=st.lists(st.sampled_from(PREFIXES), min_size=2, max_size=2))
def test_a_prefix_is_forced_and_scored(function, beam_size, seed, prefixes):
    tables = random_tables(seed)
    options = dict(length_penalty=0.6, banned_ids=(B,), min_length=1)  # a prefix may be banned
    more = dict(beam_size=beam_size) if function is beam_search else {}
    padded = np.array([[*prefix, PAD, PAD][:2] for prefix in prefixes])
    ids, scores = searcher(function, **options, **more)(tables, np.array([4, 3]), padded)
    for row, limit in enumerate((4, 3)):
        options |= dict(beam_size=beam_size, prefix=prefixes[row])
        expected = naive_beam_search(log_probs_of(tables[row]), limit, **options)
        assert_found(ids[row], scores[row], expected)
        assert ids_of(ids[row, 0])[: len(prefixes[row])] == prefixes[row]


@pytest.mark.parametrize("function", [greedy_search, beam_search])
def test_padding_that_ends_is_allowed(function):
    table = language({EOS: 0.1, A: 0.9}, a={EOS: 0.8, A: 0.2})
    ids, _ = searcher(function, pad_id=EOS, length_penalty=0.0)(table, np.array([LENGTH]))
    assert ids[0, 0].tolist() == [A, EOS, EOS, EOS]


@pytest.mark.parametrize("function", [greedy_search, beam_search])
def test_a_prefix_and_eos_are_allowed_beyond_the_limit(function):
    options = {} if function is greedy_search else dict(beam_size=2, length_penalty=0.0)
    tables = random_tables(0, rows=1)
    ids, scores = searcher(function, **options)(tables, np.array([2]), np.array([[A, C]]))
    assert ids_of(ids[0, 0]) == (A, C, EOS)
    log_probs = log_probs_of(tables[0])
    expected = log_probs(())[A] + log_probs((A,))[C] + log_probs((A, C))[EOS]
    np.testing.assert_allclose(scores[0, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("function", [greedy_search, beam_search])
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_batch_mates_change_nothing(function, seed, max_lengths):
    options = {} if function is greedy_search else dict(beam_size=3, length_penalty=0.6)
    run, tables = searcher(function, **options), random_tables(seed)
    mate = random_tables(seed + 1)
    ids, scores = run(tables, max_lengths)
    for row in range(2):
        pair = np.stack([tables[row], mate[row]])
        other_ids, other_scores = run(pair, np.array([max_lengths[row], 4]))
        np.testing.assert_allclose(other_scores[0], scores[row], atol=1e-5)
        real = scores[row] > IMPOSSIBLE
        np.testing.assert_array_equal(other_ids[0][real], ids[row][real])


@pytest.fixture
def turns(monkeypatch):
    """The loop's turns, of searches that run uncompiled."""
    turns = []

    def python_loop(body, length, done, found, alive):
        for i in range(1, length):
            if ops.convert_to_numpy(done).all():
                break
            done, found, alive = body(i, done, found, alive)
            turns.append(i)
        return found

    monkeypatch.setattr(loop_module, "row_loop", python_loop)
    return turns


@pytest.mark.parametrize("function", cases([greedy_search, beam_search], beam_search))
def test_stops_when_all_rows_have_ended(turns, function):
    quick = language({EOS: 0.9, A: 0.05, B: 0.05}, _={A: 0.5, B: 0.5})  # all end at the second
    options = {} if function is greedy_search else dict(beam_size=2)
    parts = follow(ops.convert_to_tensor(quick.repeat(2, 0), "float32"))
    limits = ops.convert_to_tensor([4, 4], "int32")
    ids, _ = function(
        **parts, eos_ids=(EOS,), length=LENGTH, max_lengths_B=limits, **asked(function, options)
    )
    assert [len(ids_of(row)) for row in ops.convert_to_numpy(ids)[:, 0]] == [2, 2]
    assert turns == [1]


@pytest.mark.parametrize("wanted,expected", cases([(1, [1]), (2, [1, 2])], (1, [1])))
def test_stops_when_nothing_better_can_come(turns, wanted, expected):
    """A and the end are nearly sure: after two tokens no other can be as probable."""
    sure = language({EOS: 0.9, A: 0.1}, _={A: 0.9, B: 0.05, C: 0.05}, b={A: 1.0}, c={A: 1.0})
    parts = follow(ops.convert_to_tensor(sure, "float32"))
    limits = ops.convert_to_tensor([4], "int32")
    options = dict(beam_size=3, length_penalty=0.0, num_hypotheses=wanted)
    search = Search(**options)
    ids, _ = beam_search(**parts, search=search, eos_ids=(EOS,), length=4, max_lengths_B=limits)
    assert ids_of(ops.convert_to_numpy(ids)[0, 0]) == (A, EOS)
    assert turns == expected
