"""Searches over a small model: cached steps against full passes, compiled against eager."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.decoding import beam_search, greedy_search
from tests.decoding.tables import asked, naive_beam_search

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
