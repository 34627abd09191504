"""Beam search over tables of probabilities, against plain Python and enumeration."""

import itertools

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from keras_transformer.decoding import IMPOSSIBLE, beam_search, greedy_search
from tests.backends import cases
from tests.decoding.tables import (
    EOS,
    GARDEN_PATH,
    LENGTH,
    NONE_TWICE,
    PAD,
    A,
    B,
    C,
    assert_found,
    examples,
    ids_of,
    language,
    limits,
    log_probs_of,
    naive_beam_search,
    naive_marian_search,
    penalized_log_probs_of,
    random_tables,
    searcher,
    seeds,
)


def test_a_beam_finds_the_best_answer_that_greedy_misses():
    ids, scores = searcher(beam_search, beam_size=2, length_penalty=0.0)(GARDEN_PATH, np.array([4]))
    assert ids_of(ids[0, 0]) == (B, EOS)
    np.testing.assert_allclose(scores[0, 0], np.log(0.4), rtol=1e-5)


@pytest.mark.parametrize("length_penalty,winner", [(0.0, (EOS,)), (1.0, (A, B, EOS))])
def test_length_penalty_by_hand(length_penalty, winner):
    table = language({EOS: 1}, _={A: 0.6, EOS: 0.4}, a={B: 0.75, C: 0.25}, ab={EOS: 0.8, C: 0.2})
    ids, scores = searcher(beam_search, beam_size=2, length_penalty=length_penalty)(
        table, np.array([4])
    )
    # One token: lp = (6 / 6)^alpha. Three: lp = (8 / 6)^alpha.
    by_hand = {(EOS,): np.log(0.4), (A, B, EOS): np.log(0.36) / (8 / 6) ** length_penalty}
    assert [ids_of(row) for row in ids[0]] == sorted(by_hand, key=by_hand.get, reverse=True)
    assert ids_of(ids[0, 0]) == winner
    np.testing.assert_allclose(scores[0], sorted(by_hand.values(), reverse=True), rtol=1e-5)


def test_a_finished_hypothesis_is_frozen():
    # After "a", EOS is likely at once; what would follow it must neither count nor be written.
    table = language({C: 0.9, EOS: 0.1}, _={A: 0.9, B: 0.1}, a={EOS: 0.8, B: 0.2})
    ids, scores = searcher(beam_search, beam_size=3, length_penalty=0.6)(table, np.array([4]))
    assert ids[0, 0].tolist() == [A, EOS, PAD, PAD]
    np.testing.assert_allclose(scores[0, 0], np.log(0.72) / (7 / 6) ** 0.6, rtol=1e-5)


def test_the_best_is_found_though_as_many_as_the_beam_have_finished():
    """At "ab" two bad ones have ended, and "ab" is better than both: its end is still to come."""
    table = language({EOS: 1}, _={A: 0.9, EOS: 0.1}, a={B: 0.9, EOS: 0.1}, ab={C: 0.1, EOS: 0.9})
    ids, scores = searcher(beam_search, beam_size=2, length_penalty=0.0)(table, np.array([4]))
    assert ids_of(ids[0, 0]) == (A, B, EOS)
    np.testing.assert_allclose(scores[0, 0], np.log(0.9**3), rtol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_as_many_go_on_as_the_beam_though_all_ends_are_likely():
    """After two tokens four of the best six have ended, and AB, that will, is the seventh."""
    table = language(
        {A: 0.25, B: 0.25, C: 0.25, EOS: 0.25},
        _={A: 0.5, B: 0.5},
        a={EOS: 0.3, C: 0.3, A: 0.21, B: 0.19},
        b={EOS: 0.29, C: 0.29, A: 0.02, B: 0.4},
        ab={EOS: 0.99, C: 0.01},
    )
    options = dict(beam_size=3, length_penalty=0.0, eos_ids=(EOS, C))
    ids, scores = searcher(beam_search, **options)(table, np.array([4]))
    assert sorted(ids_of(row, (EOS, C)) for row in ids[0]) == [(A, EOS), (A, B, EOS), (A, C)]
    np.testing.assert_allclose(scores[0], np.log([0.15, 0.15, 0.5 * 0.19 * 0.99]), rtol=1e-5)


@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_a_beam_of_all_hypotheses_ranks_them_all(seed, max_lengths):
    """By enumeration: 27 + 9 + 3 + 1 sequences of A, B, C that end in EOS."""
    tables = random_tables(seed)
    ids, scores = searcher(beam_search, beam_size=40, length_penalty=0.6)(tables, max_lengths)
    for row, max_length in enumerate(max_lengths):
        log_probs, ranked = log_probs_of(tables[row]), []
        for size in range(max_length):
            for words in itertools.product((A, B, C), repeat=size):
                sequence = (*words, EOS)
                total = sum(log_probs(sequence[:i])[token] for i, token in enumerate(sequence))
                ranked.append((total / ((5 + len(sequence)) / 6) ** 0.6, sequence))
        assert_found(ids[row], scores[row], sorted(ranked, reverse=True))


OPTIONS = [
    dict(beam_size=3, length_penalty=0.6, eos_ids=(EOS, C)),
    dict(beam_size=3, length_penalty=0.6, constraint=NONE_TWICE),
    dict(beam_size=2, length_penalty=0.0, no_repeat_ngram_size=2, banned_ids=(C,)),
    dict(beam_size=2, length_penalty=0.6, diversity_rate=0.5, no_repeat_ngram_size=1),
    dict(beam_size=1, length_penalty=0.6, min_length=1, banned_ids=(A,)),
    dict(beam_size=3, length_penalty=0.6),
    dict(beam_size=2, length_penalty=1.0, min_length=2),
    dict(beam_size=2, length_penalty=0.0, banned_ids=(B,)),
    dict(beam_size=3, length_penalty=0.6, no_repeat_ngram_size=1),
    dict(beam_size=3, length_penalty=0.0, diversity_rate=1.0),
    dict(beam_size=1, length_penalty=1.0, eos_ids=(EOS, C, B), min_length=2),
]


@pytest.mark.parametrize("options", cases(OPTIONS, *OPTIONS[:2]), ids=str)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_beam_search_equals_the_naive_one(options, seed, max_lengths):
    tables = random_tables(seed)
    ids, scores = searcher(beam_search, **options)(tables, max_lengths)
    assert ids.shape == (2, options["beam_size"], LENGTH) and scores.shape == ids.shape[:2]
    for row, limit in enumerate(max_lengths):
        expected = naive_beam_search(log_probs_of(tables[row]), limit, **options)
        assert_found(ids[row], scores[row], expected, options.get("eos_ids", (EOS,)))


MARIANS = [
    dict(beam_size=3, length_penalty=0.6, forced_eos=False),
    dict(beam_size=3, length_penalty=0.0, forced_eos=True),
    dict(beam_size=2, length_penalty=1.0, forced_eos=False),
    dict(beam_size=1, length_penalty=0.6, forced_eos=False),
]


@pytest.mark.parametrize("options", cases(MARIANS, MARIANS[0]), ids=str)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_the_scoring_of_marian_equals_the_naive_one(options, seed, max_lengths):
    tables = random_tables(seed)
    function = greedy_search if options["beam_size"] == 1 else beam_search
    ids, scores = searcher(function, scoring="marian", **options)(tables, max_lengths)
    for row, limit in enumerate(max_lengths):
        expected = naive_marian_search(log_probs_of(tables[row]), limit, **options)
        assert_found(ids[row], scores[row], expected)


@pytest.mark.once("made of parts that are tested under each backend")
def test_in_the_scoring_of_marian_an_end_takes_a_place_for_good():
    """By hand: the two ends at once leave no place for "ab", which is better than both."""
    table = language({EOS: 1}, _={A: 0.9, EOS: 0.1}, a={B: 0.9, EOS: 0.1}, ab={C: 0.1, EOS: 0.9})
    run = searcher(beam_search, beam_size=2, length_penalty=1.0, scoring="marian")
    ids, scores = run(table, np.array([4]))
    assert [ids_of(row) for row in ids[0]] == [(A, B, EOS), (EOS,)]
    np.testing.assert_allclose(scores[0], np.log([0.9**3, 0.1]) / [3, 1], rtol=1e-5)


PENALIZED = [
    dict(beam_size=2, length_penalty=0.0, eos_ids=(EOS, C), min_length=2),
    dict(beam_size=1, length_penalty=0.6),
    dict(beam_size=3, length_penalty=0.6),
    dict(beam_size=3, length_penalty=0.6, constraint=NONE_TWICE),
]


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("options", cases(PENALIZED, *PENALIZED[:2]), ids=str)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits, penalty=st.sampled_from((0.5, 3.0)))
def test_a_repetition_penalty_is_a_search_over_other_logits(options, seed, max_lengths, penalty):
    tables = random_tables(seed)
    both = [beam_search, greedy_search] if options["beam_size"] == 1 else [beam_search]
    for function in both:
        run = searcher(function, repetition_penalty=penalty, **options)
        ids, scores = run(tables, max_lengths)
        for row, limit in enumerate(max_lengths):
            log_probs = penalized_log_probs_of(tables[row], penalty)
            expected = naive_beam_search(log_probs, limit, **options)
            assert_found(ids[row], scores[row], expected, options.get("eos_ids", (EOS,)))


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "wanted,length_penalty", cases([*itertools.product([1, 2], [0.0, 0.6])], (2, 0.6))
)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_so_many_hypotheses_are_the_same_as_of_the_whole_search(
    length_penalty, wanted, seed, max_lengths
):
    tables = random_tables(seed)
    options = dict(beam_size=3, length_penalty=length_penalty)
    whole_ids, whole_scores = searcher(beam_search, **options)(tables, max_lengths)
    ids, scores = searcher(beam_search, num_hypotheses=wanted, **options)(tables, max_lengths)
    np.testing.assert_array_equal(ids[:, :wanted], whole_ids[:, :wanted])
    np.testing.assert_allclose(scores[:, :wanted], whole_scores[:, :wanted], atol=1e-5)


@pytest.mark.parametrize("mate_length", [1, 4])
def test_places_without_a_hypothesis_are_padding(mate_length):
    """At most EOS and nothing else: one hypothesis for a beam of three."""
    run = searcher(beam_search, beam_size=3, length_penalty=0.6)
    ids, scores = run(random_tables(0), np.array([1, mate_length]))
    assert (scores[0, 1:] == IMPOSSIBLE).all()
    assert ids[0].tolist() == [[EOS, PAD, PAD, PAD], [PAD] * 4, [PAD] * 4]
