"""Tables of probabilities in place of a model, and the same search in plain Python.

A table gives the distribution of the next token for each history of a row, so that a wrong order
of the state, an extra token or the history of another row changes the scores.
"""

import dataclasses
import functools
import math

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.decoding import IMPOSSIBLE, greedy_search
from keras_transformer.search import Search

PAD, EOS, A, B, C = range(5)
VOCABULARY, LENGTH, BEAMS = 5, 4, 40  # at most
# Histories are numbered as the nodes of a tree with VOCABULARY children each; the root is 0.
HISTORIES = sum(VOCABULARY**depth for depth in range(LENGTH))


def history_number(ids):
    return functools.reduce(lambda number, token: number * VOCABULARY + token + 1, ids, 0)


def follow(tables_BHV):
    """Return the first logits, a state, and a step that looks up the history of each beam.

    The state holds the tokens of each slot; only the ancestors say which beam they belong to.
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
    """Return the options with those of a search as one `Search`, by default those of the paper."""
    names = {field.name for field in dataclasses.fields(Search)}
    of_search = {name: value for name, value in options.items() if name in names}
    plain = dict(beam_size=1, length_penalty=0.0) if function is greedy_search else {}
    others = {name: value for name, value in options.items() if name not in of_search}
    return {"search": Search(**plain | of_search), **others}


@functools.cache
def searcher(function, **options):
    """Return the search over tables with these options, compiled once for all tests."""

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
    """Return a table of likelihoods after each history: `_` is the empty one, `ab` is A, B."""
    table = np.zeros((1, HISTORIES, VOCABULARY))
    table[0, :] = [default.get(token, 0) for token in range(VOCABULARY)]
    for history, likelihoods in rules.items():
        number = history_number("_eabc".index(letter) for letter in history.strip("_"))
        table[0, number] = [likelihoods.get(token, 0) for token in range(VOCABULARY)]
    return np.log(np.maximum(table, 1e-12))


def log_probs_of(table):
    """Return a function from ids to the log-probabilities of the next token."""
    table = table - np.log(np.exp(table).sum(-1, keepdims=True))
    return lambda ids: table[history_number(ids)]


def penalized_log_probs_of(table, penalty):
    """Return the same function of the table after a repetition penalty."""

    def log_probs(ids):
        logits = table[history_number(ids)].copy()
        for token in set(ids):
            logits[token] *= penalty if logits[token] < 0 else 1 / penalty
        return logits - np.log(np.exp(logits).sum())

    return log_probs


def ids_of(row, eos_ids=(EOS,)):
    """Return a row as a tuple; assert that only padding follows its first end, or its limit."""
    row = list(row)
    limit = row.index(PAD) if PAD in row else len(row)
    end = next((i + 1 for i, token in enumerate(row) if token in eos_ids), limit)
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
    no_repeat_ngram_size=0,
    diversity_rate=0.0,
):
    """The same search for one row with lists: return [(score, ids), ...], best first.

    Where a row must end, it takes the most probable end.
    """
    alive, finished = [(0.0, ())], []
    for i in range(max_length):
        candidates, places = [], {}
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
                tokens -= {x for x in tokens if repeats((*ids, x), no_repeat_ngram_size)}
            candidates += [(total + values[token], (*ids, token)) for token in tokens]
            order = sorted(tokens, key=lambda x: -values[x])
            places |= {(*ids, token): place for place, token in enumerate(order)}
        candidates.sort(key=lambda x: x[0] - diversity_rate * places[x[1]], reverse=True)
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


def naive_marian_search(log_probs, max_length, beam_size, length_penalty, forced_eos):
    """Marian's search for one row with lists: return [(score, ids), ...], best first.

    Each hypothesis that ends takes a place of the beam for good.
    """
    alive, finished = [(0.0, ())], []
    for length in range(1, max_length + 1):
        is_last = length == max_length
        tokens = [EOS] if is_last and forced_eos else [EOS, A, B, C]
        longer = [(total + log_probs(ids)[x], (*ids, x)) for total, ids in alive for x in tokens]
        best = sorted(longer, reverse=True)[: beam_size - len(finished)]
        ended = [x for x in best if is_last or x[1][-1] == EOS]
        finished += [(total / length**length_penalty, ids) for total, ids in ended]
        alive = [x for x in best if x not in ended]
    return sorted(finished, reverse=True)


def repeats(ids, size):
    """Whether the last `size` tokens occurred before."""
    earlier = [ids[i : i + size] for i in range(len(ids) - size)]
    return size > 0 and ids[len(ids) - size :] in earlier


def assert_found(ids, scores, expected, eos_ids=(EOS,)):
    """Assert that a sentence has the expected [(score, ids), ...] and no other hypotheses."""
    np.testing.assert_allclose(scores[: len(expected)], [x[0] for x in expected], atol=1e-4)
    assert (scores[len(expected) :] == IMPOSSIBLE).all()
    for row, (_, wanted) in zip(ids, expected, strict=False):
        assert ids_of(row, eos_ids) == wanted


GARDEN_PATH = language(
    {A: 0.3, B: 0.25, C: 0.25, EOS: 0.2}, _={A: 0.5, B: 0.4, EOS: 0.1}, b={EOS: 1}
)
seeds = st.integers(0, 2**32 - 1)
limits = st.lists(st.integers(1, LENGTH), min_size=2, max_size=2).map(np.array)
examples = hypothesis.settings(max_examples=15)


class NoneTwice:
    """A constraint: no token follows itself."""

    def __repr__(self):
        return "NoneTwice"  # tests' names must be the same in each process

    def allowed(self, state, vocab_size):
        return ops.expand_dims(state["last"], -1) != ops.arange(vocab_size, dtype="int32")

    def advance(self, state, token_ids):
        return {"last": token_ids}


NONE_TWICE = NoneTwice()
