"""Phrases that a search must write: beside all sentences that have them, and states by hand."""

import functools
import itertools
import operator

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.decoding import Phrases, beam_search
from keras_transformer.search import Search
from tests.decoding.tables import (
    EOS,
    LENGTH,
    VOCABULARY,
    A,
    B,
    C,
    examples,
    follow,
    ids_of,
    log_probs_of,
    random_tables,
    seeds,
)

# B goes on with the word before it.
PHRASES = Phrases((EOS,), "", np.arange(VOCABULARY) == B)
WANTED = [
    [[[A]]],
    [[[A, B]]],
    [[[C, B], [A, A]]],
    [[[C]], [[A]]],
    [[[A, C], [C]]],
    [],
]
OVERLAPPING = [[[A, C], [A]], [[C, A]]]
CONTINUING = [[[A]], [[B, A], [C, B, A]]]


limits = st.integers(3, LENGTH)


@functools.cache
def searcher(beam_size, num_hypotheses=None):
    import keras

    search = Search(beam_size=beam_size, length_penalty=0.0, num_hypotheses=num_hypotheses)

    def run(tables, limits, state):
        return beam_search(
            **follow(tables),
            search=search,
            eos_ids=(EOS,),
            length=LENGTH,
            max_lengths_B=limits,
            constraint=PHRASES,
            constraint_state=state,
        )

    return compiled(run, keras.layers.Identity())


def found(phrases, tables, limits, beam_size, **options):
    state = PHRASES.start(phrases, limits)
    state = {name: ops.convert_to_tensor(x) for name, x in state.items()}
    arrays = ops.convert_to_tensor(tables, "float32"), ops.convert_to_tensor(limits, "int32")
    return [ops.convert_to_numpy(x) for x in searcher(beam_size, **options)(*arrays, state)]


def has(ids, phrases):
    """Whether a sequence has a form of each phrase, each with its last word whole."""

    def ends(form):
        places = range(len(ids) - len(form))
        return [ids[x + len(form)] for x in places if list(ids[x : x + len(form)]) == form]

    return all(any(token != B for form in forms for token in ends(form)) for forms in phrases)


def sentences(log_probs, limit, phrases):
    """All sentences with the phrases, with their log-probabilities, best first."""
    found = []
    for length in range(limit):
        for content in itertools.product((A, B, C), repeat=length):
            ids = (*content, EOS)
            if has(ids, phrases):
                found.append((sum(log_probs(ids[:i])[ids[i]] for i in range(len(ids))), ids))
    return sorted(found, reverse=True)


@pytest.mark.once("made of parts that are tested under each backend")
@examples
@hypothesis.given(seed=seeds, wanted=st.sampled_from(WANTED), limit=limits)
def test_a_wide_beam_finds_the_best_sentence_with_the_phrases(seed, wanted, limit):
    hypothesis.assume(sum(min(map(len, forms)) for forms in wanted) < limit)
    tables = random_tables(seed)
    ids, scores = found([wanted, []], tables, np.array([limit, 3]), beam_size=40)
    for row, (phrases, most) in enumerate([(wanted, limit), ([], 3)]):
        all_of_them = sentences(log_probs_of(tables[row]), most, phrases)
        # Near the limit no form is begun again while it goes on, as by A A B for the phrase A B.
        straight = [x for x in all_of_them if not any(map(operator.eq, x[1], x[1][1:]))]
        assert (scores[row, 0], ids_of(ids[row, 0])) in [
            (pytest.approx(total, abs=1e-4), one) for total, one in all_of_them
        ]
        assert scores[row, 0] >= straight[0][0] - 1e-4


@examples
@hypothesis.given(
    seed=seeds, wanted=st.sampled_from([*WANTED, OVERLAPPING, CONTINUING]), limit=limits
)
def test_a_narrow_beam_finds_the_phrases(seed, wanted, limit):
    hypothesis.assume(sum(map(PHRASES.least, wanted)) < limit)
    ids, scores = found([wanted] * 2, random_tables(seed), np.array([limit] * 2), beam_size=3)
    for row in range(2):
        for one, score in zip(ids[row], scores[row], strict=True):
            if score > -1e8:
                assert has(ids_of(one), wanted)
        assert scores[row, 0] > -1e8


def tensors(state):
    return {name: ops.convert_to_tensor(x) for name, x in state.items()}


def test_states_by_hand():
    state = tensors(PHRASES.start([[[[A, B]], [[C], [C, B]]]], [9]))

    def look(state):
        matched, met = (ops.convert_to_numpy(state[x])[0, :3].tolist() for x in ("matched", "met"))
        needed = ops.convert_to_numpy(PHRASES.proposals(state))[0, :3].tolist()
        return matched, met, needed

    def step(state, token):
        return PHRASES.advance(state, ops.convert_to_tensor([token], dtype="int32"))

    assert look(state) == ([0, 0, 0], [False] * 3, [A, C, C])
    state = step(state, C)  # the second phrase is whole, if no B follows
    assert look(state) == ([0, 1, 1], [False] * 3, [A, -1, -1])
    longer, other = step(state, B), step(state, A)
    assert look(longer) == ([0, 0, 2], [False] * 3, [A, -1, -1])
    assert look(other) == ([1, 0, 0], [False, True, True], [B, -1, -1])
    assert not ops.convert_to_numpy(PHRASES.is_complete(other)).any()
    end = step(other, B)
    assert ops.convert_to_numpy(PHRASES.is_complete(end)).all()
    broken = step(other, A)  # begins again
    assert look(broken)[0] == [1, 0, 0]
    assert ops.convert_to_numpy(broken["steps"]).tolist() == [6]


def test_what_fits_and_how_far_it_leads():
    tokens = ops.convert_to_tensor([[EOS, A, C]], dtype="int32")
    proposed = ops.convert_to_tensor([[False, True, False]])
    for limit, expected in [(3, [False, True, True]), (2, [False, True, False])]:
        state = tensors(PHRASES.start([[[[A]]]], [limit]))
        assert ops.convert_to_numpy(PHRASES.fits(state, tokens, proposed))[0].tolist() == expected
    state = tensors(PHRASES.start([[[[A, B]], [[C]]]], [9]))
    assert ops.convert_to_numpy(PHRASES.progress(state, tokens))[0].tolist() == [0, 1, 1]
    none = tensors(PHRASES.start([[]], [2]))
    assert ops.convert_to_numpy(PHRASES.fits(none, tokens, proposed)).all()


def test_phrases_that_do_not_fit():
    with pytest.raises(ValueError, match="phrases must fit into 3 tokens with EOS"):
        PHRASES.start([[[[A, B]], [[C]]]], [3])
