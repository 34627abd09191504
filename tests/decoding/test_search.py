"""Greedy and beam search over tables of probabilities and a tiny model, against plain Python.

A table gives the distribution of the next token for each history of a row, so that a state out of
order, a token too many or another row's history shows in the scores.
"""

import functools
import itertools
import math

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.decoding import (
    IMPOSSIBLE,
    beam_search,
    greedy_search,
    length_penalty_factor,
)
from keras_transformer.decoding import beam as beam_module
from keras_transformer.decoding import greedy as greedy_module
from keras_transformer.search import Search

PAD, EOS, A, B, C = range(5)
VOCABULARY, LENGTH, BEAMS = 5, 4, 40  # at most
# Histories are numbered as the nodes of a tree with VOCABULARY children each; the root is 0.
HISTORIES = sum(VOCABULARY**depth for depth in range(LENGTH))


def history_number(ids):
    return functools.reduce(lambda number, token: number * VOCABULARY + token + 1, ids, 0)


def follow(tables_BHV):
    """The first logits, a state, and a step that looks each beam's history up.

    The state keeps the tokens of each slot, so that only the ancestors tell whose they are.
    """
    rows = ops.shape(tables_BHV)[0]
    state = {"tables": tables_BHV, "tokens": ops.zeros((rows, LENGTH + 1, BEAMS), dtype="int32")}

    def step(token_ids_BK, state, index, ancestors_BKM=None):
        beams = token_ids_BK.shape[1]
        if ancestors_BKM is None:
            ancestors_BKM = ops.zeros((ops.shape(token_ids_BK)[0], 1, LENGTH + 1), dtype="int32")
        here_M11 = ops.expand_dims(ops.arange(LENGTH + 1, dtype="int32") == index, (1,))
        new_B1K = ops.pad(token_ids_BK, ((0, 0), (0, BEAMS - beams)))[:, None]
        tokens = ops.where(here_M11, new_B1K, state["tokens"])
        history_BK = ops.zeros_like(token_ids_BK)
        for place in range(1, LENGTH + 1):
            slots_BK = ops.maximum(ancestors_BKM[:, :, place], 0)
            chosen_BK = ops.take_along_axis(tokens[:, place], slots_BK, axis=1)
            is_past_BK = ops.full_like(history_BK, place) <= index
            longer_BK = history_BK * VOCABULARY + chosen_BK + 1
            history_BK = ops.where(is_past_BK, longer_BK, history_BK)
        history_BK1 = ops.expand_dims(ops.minimum(history_BK, HISTORIES - 1), 2)
        logits_BKV = ops.take_along_axis(state["tables"], history_BK1, axis=1)
        return logits_BKV, {"tables": state["tables"], "tokens": tokens}

    return {"step": step, "logits_BV": tables_BHV[:, 0], "state": state}


def asked(function, options):
    """The same options with those of a search as one object, by default those of the paper."""
    own = {name: options[name] for name in Search.names() if name in options}
    plain = dict(beam_size=1, length_penalty=0.0) if function is greedy_search else {}
    others = {name: value for name, value in options.items() if name not in own}
    return {"search": Search(**plain | own), **others}


@functools.cache
def searcher(function, **options):
    """The search with these options over tables, compiled once for all tests."""

    def run(tables, room, max_lengths, prefix=None):
        settings = {}
        if "constraint" in options:
            settings["constraint_state"] = {"last": ops.full_like(max_lengths, -1)}
        settings |= dict(max_lengths_B=max_lengths, prefix_BP=prefix, length=ops.shape(room)[1])
        return function(
            **follow(tables), **dict(eos_ids=(EOS,)) | settings | asked(function, options)
        )

    run = compiled(run, keras.layers.Identity())

    def on_arrays(tables, *arrays):
        arrays = (tables, np.zeros((len(tables), LENGTH)), *arrays)
        arrays = (ops.convert_to_tensor(x, "float32" if x.ndim == 3 else "int32") for x in arrays)
        return [ops.convert_to_numpy(x) for x in run(*arrays)]

    return on_arrays


def random_tables(seed, rows=2):
    return np.random.default_rng(seed).normal(0, 1.5, (rows, HISTORIES, VOCABULARY))


def language(default, **rules):
    """A table from the likelihoods after each history; `_` is the empty one, `ab` is A, B."""
    table = np.zeros((1, HISTORIES, VOCABULARY))
    table[0, :] = [default.get(token, 0) for token in range(VOCABULARY)]
    for history, likelihoods in rules.items():
        number = history_number("_eabc".index(letter) for letter in history.strip("_"))
        table[0, number] = [likelihoods.get(token, 0) for token in range(VOCABULARY)]
    return np.log(np.maximum(table, 1e-12))


def log_probs_of(table):
    """ids -> log-probabilities of the next token."""
    table = table - np.log(np.exp(table).sum(-1, keepdims=True))
    return lambda ids: table[history_number(ids)]


def ids_of(row, eos_ids=(EOS,)):
    """A returned row as a tuple; asserts that nothing but padding follows its first end."""
    row = list(row)
    end = next((i + 1 for i, token in enumerate(row) if token in eos_ids), len(row))
    assert set(row[end:]) <= {PAD}
    return tuple(int(token) for token in row[:end])


def naive_beam_search(
    log_probs,
    max_length,
    beam_size=1,
    length_penalty=0.0,
    min_length=0,
    banned_ids=(),
    prefix=(),
    pad_id=PAD,
    eos_ids=(EOS,),
    constraint=None,
):
    """The same search for one row with lists: [(score, ids), ...], best first.

    Where a row must end, it takes the most probable of the ends.
    """
    alive, finished = [(0.0, ())], []
    for i in range(max_length):
        candidates = []
        for total, ids in alive:
            values = log_probs(ids)
            if i < len(prefix):
                tokens = [prefix[i]]
            elif i == max_length - 1:
                tokens = [max(eos_ids, key=values.__getitem__)]
            else:
                tokens = set(range(len(values))) - {pad_id, *banned_ids}
                tokens -= {*eos_ids} if i < min_length else set()
                tokens -= {ids[-1]} if constraint and ids else set()
            candidates += [(total + values[token], (*ids, token)) for token in tokens]
        candidates.sort(reverse=True)
        finished += [
            (total / ((5 + i + 1) / 6) ** length_penalty, ids)
            for total, ids in candidates[:beam_size]
            if ids[-1] in eos_ids
        ]
        alive = [each for each in candidates if each[1][-1] not in eos_ids][:beam_size]
        best_alive = max((total for total, _ in alive), default=-math.inf)
        best_alive /= ((5 + i + 1) / 6) ** length_penalty
        if len(finished) >= beam_size and max(finished)[0] >= best_alive:
            break
    return sorted(finished, reverse=True)[:beam_size]


def assert_found(ids, scores, expected, eos_ids=(EOS,)):
    """The rows of one sentence are the expected [(score, ids), ...] and then nothing."""
    np.testing.assert_allclose(scores[: len(expected)], [x[0] for x in expected], atol=1e-4)
    assert (scores[len(expected) :] == IMPOSSIBLE).all()
    for row, (_, wanted) in zip(ids, expected, strict=False):
        assert ids_of(row, eos_ids) == wanted


GARDEN_PATH = language(
    {A: 0.3, B: 0.25, C: 0.25, EOS: 0.2}, _={A: 0.5, B: 0.4, EOS: 0.1}, b={EOS: 1}
)


def test_greedy_takes_the_most_probable_token_each_time():
    ids, scores = searcher(greedy_search)(GARDEN_PATH, np.array([4]))
    assert ids.tolist() == [[[A, A, A, EOS]]]
    np.testing.assert_allclose(scores, [[np.log(0.5 * 0.3 * 0.3 * 0.2)]], rtol=1e-5)


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


def test_length_penalty_factor_is_equation_14_of_wu_et_al():
    lengths = np.array([1, 7, 13], "int32")
    factor = ops.convert_to_numpy(length_penalty_factor(ops.convert_to_tensor(lengths), 0.6))
    np.testing.assert_allclose(factor, [1, 2**0.6, 3**0.6], rtol=1e-6)


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


seeds = st.integers(0, 2**32 - 1)
limits = st.lists(st.integers(1, LENGTH), min_size=2, max_size=2).map(np.array)
examples = hypothesis.settings(max_examples=15)


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


class NoneTwice:
    """A constraint that no token follows itself."""

    def __repr__(self):
        return "NoneTwice"  # tests' names must be the same in each process

    def allowed(self, state, vocab_size):
        return ops.expand_dims(state["last"], -1) != ops.arange(vocab_size, dtype="int32")

    def advance(self, state, token_ids):
        return {"last": token_ids}


NONE_TWICE = NoneTwice()


@pytest.mark.parametrize(
    "options",
    [
        dict(beam_size=3, length_penalty=0.6),
        dict(beam_size=3, length_penalty=0.6, constraint=NONE_TWICE),
        dict(beam_size=2, length_penalty=1.0, min_length=2),
        dict(beam_size=2, length_penalty=0.0, banned_ids=(B,)),
        dict(beam_size=1, length_penalty=0.6, min_length=1, banned_ids=(A,)),
        dict(beam_size=3, length_penalty=0.6, eos_ids=(EOS, C)),
        dict(beam_size=1, length_penalty=1.0, eos_ids=(EOS, C, B), min_length=2),
    ],
    ids=str,
)
@examples
@hypothesis.given(seed=seeds, max_lengths=limits)
def test_beam_search_equals_the_naive_one(options, seed, max_lengths):
    tables = random_tables(seed)
    ids, scores = searcher(beam_search, **options)(tables, max_lengths)
    assert ids.shape == (2, options["beam_size"], LENGTH) and scores.shape == ids.shape[:2]
    for row, limit in enumerate(max_lengths):
        expected = naive_beam_search(log_probs_of(tables[row]), limit, **options)
        assert_found(ids[row], scores[row], expected, options.get("eos_ids", (EOS,)))


@pytest.mark.parametrize("length_penalty", [0.0, 0.6])
@pytest.mark.parametrize("wanted", [1, 2])
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(length_penalty=0.6, min_length=2, banned_ids=(C,)),
        dict(length_penalty=0.6, constraint=NONE_TWICE),
        dict(length_penalty=0.6, min_length=1, eos_ids=(EOS, C)),
    ],
    ids=str,
)
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


@pytest.mark.parametrize("mate_length", [1, 4])
def test_places_without_a_hypothesis_are_padding(mate_length):
    """At most EOS and nothing else: one hypothesis for a beam of three."""
    run = searcher(beam_search, beam_size=3, length_penalty=0.6)
    ids, scores = run(random_tables(0), np.array([1, mate_length]))
    assert (scores[0, 1:] == IMPOSSIBLE).all()
    assert ids[0].tolist() == [[EOS, PAD, PAD, PAD], [PAD] * 4, [PAD] * 4]


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

    for module in (beam_module, greedy_module):
        monkeypatch.setattr(module, "row_loop", python_loop)
    return turns


@pytest.mark.parametrize("function", [greedy_search, beam_search])
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


@pytest.mark.parametrize("wanted,expected", [(1, [1]), (2, [1, 2])])
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


MAX_LENGTHS = np.array([7, 5, 7], "int32")
SOURCE = np.array([[4, 7, 5, 1, 3, 0, 0], [8, 9, 10, 11, 3, 5, 3], [6, 6, 3, 0, 0, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model(tiny_transformer):
    """Weights with which the searches give neither one repeated token nor an early end."""
    return tiny_transformer(scale=1.0, seed=1, norm_first=True, tie_output=False)


def translate(model, **options):
    """A search function over source ids and limits, cached steps inside."""
    function = beam_search if "beam_size" in options else greedy_search

    def run(source_ids, max_lengths):
        first_ids = ops.full((ops.shape(source_ids)[0], 1), model.config.bos_id, dtype="int32")
        beam_size, length = options.get("beam_size", 1), ops.shape(source_ids)[1] + 4
        logits, state, step = model.prefill(source_ids, first_ids, length + 1, beam_size)
        settings = dict(eos_ids=(3,), length=length, max_lengths_B=max_lengths, banned_ids=(2,))
        return function(step, logits, state, **settings, **asked(function, options))

    return run


def on_arrays(run, *arrays):
    return [ops.convert_to_numpy(x) for x in run(*map(ops.convert_to_tensor, arrays))]


@pytest.fixture(scope="module")
def full_pass(model):
    """(row of SOURCE, ids) -> log-probabilities, by a full forward pass each time."""
    logits_of = compiled(lambda inputs: model(inputs), model)

    @functools.cache
    def log_probs(row, ids):
        target_ids = np.zeros((1, 8), "int32")
        target_ids[0, : len(ids) + 1] = (model.config.bos_id, *ids)
        inputs = {"source_ids": SOURCE[row : row + 1], "target_ids": target_ids}
        logits = logits_of(keras.tree.map_structure(ops.convert_to_tensor, inputs))
        logits = ops.convert_to_numpy(logits)[0, len(ids)].astype("float64")
        return logits - np.log(np.exp(logits).sum())

    return log_probs


@pytest.mark.parametrize("options", [{}, dict(beam_size=3, length_penalty=0.6)], ids=str)
def test_a_models_search_equals_full_passes(model, full_pass, options):
    run = compiled(translate(model, **options), model)
    ids, scores = on_arrays(run, SOURCE, MAX_LENGTHS)
    used = {token for row in ids[:, 0] for token in row.tolist()}
    assert len(used - {0}) >= 4  # the test says little where one token is repeated
    for row, limit in enumerate(MAX_LENGTHS):
        log_probs = functools.partial(full_pass, row)
        expected = naive_beam_search(log_probs, limit, banned_ids=(2,), eos_ids=(3,), **options)
        np.testing.assert_allclose(scores[row], [score for score, _ in expected], atol=1e-3)
        for found, (_, wanted) in zip(ids[row], expected, strict=True):
            assert tuple(found[: len(wanted)]) == wanted and not found[len(wanted) :].any()

    # Alone, and without the padding that the others brought.
    alone = SOURCE[2:, :3]
    alone_ids, alone_scores = on_arrays(run, alone, MAX_LENGTHS[2:])
    np.testing.assert_array_equal(alone_ids[0], ids[2, :, : alone_ids.shape[2]])
    np.testing.assert_allclose(alone_scores[0], scores[2], atol=1e-4)


def test_compiled_equals_eager_and_sees_new_weights(model, tiny_transformer):
    eager = translate(model, beam_size=2)
    run = compiled(eager, model)
    first_ids, first_scores = on_arrays(run, SOURCE, MAX_LENGTHS)
    other = tiny_transformer(scale=1.0, seed=2, norm_first=True, tie_output=False)
    old = model.get_weights()
    try:
        model.set_weights(other.get_weights())
        ids, scores = on_arrays(run, SOURCE, MAX_LENGTHS)
        eager_ids, eager_scores = on_arrays(eager, SOURCE, MAX_LENGTHS)
    finally:
        model.set_weights(old)
    assert (ids != first_ids).any() and np.abs(scores - first_scores).max() > 1e-2
    np.testing.assert_array_equal(ids, eager_ids)
    np.testing.assert_allclose(scores, eager_scores, atol=1e-4)
    np.testing.assert_array_equal(on_arrays(run, SOURCE, MAX_LENGTHS)[0], first_ids)
