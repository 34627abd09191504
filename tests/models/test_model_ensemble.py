"""Ensembles: the mean of the models' log-probabilities, at each step and in scores."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.models import Ensemble
from keras_transformer.running.runner import score_function
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search

SOURCE = np.array([[4, 7, 5, 3], [8, 9, 3, 0]], "int32")
FIRST = np.full((2, 1), 2, "int32")
numpy = ops.convert_to_numpy


@pytest.fixture(scope="module")
def models(tiny_transformer):
    """Two models of different sizes."""
    return [
        tiny_transformer(scale=1.0, seed=1),
        tiny_transformer(scale=1.0, seed=2, num_encoder_layers=2, max_length=9),
    ]


def logs(logits):
    logits = numpy(logits).astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


@pytest.mark.once("made of parts that are tested under each backend")
def test_steps_average_log_probabilities(models):
    arguments = [ops.convert_to_tensor(x) for x in (SOURCE, FIRST)]
    logits, state, step = Ensemble(models).prefill(*arguments, 3)
    begun = [model.prefill(*arguments, 3) for model in models]
    np.testing.assert_allclose(
        numpy(logits), np.mean([logs(x) for x, *_ in begun], axis=0), atol=1e-5
    )
    ids = np.array([[9], [5]], "int32")
    second, _ = step(ids, state, 1)
    alone = [logs(one(ids, state, 1)[0]) for _, state, one in begun]
    np.testing.assert_allclose(numpy(second), np.mean(alone, axis=0), atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_one_model_is_itself(models):
    labels = np.array([[5, 6, 3], [9, 3, 0]], "int32")
    arguments = [ops.convert_to_tensor(x) for x in (SOURCE, labels)]
    expected = numpy(score_function(models[0])(*arguments))
    for same in ([models[0]], [models[0]] * 2):
        found = numpy(score_function(Ensemble(same))(*arguments))
        np.testing.assert_allclose(found, expected, atol=1e-5)
    both = numpy(score_function(Ensemble(models))(*arguments))
    assert (np.abs(both - expected) > 1e-3).all()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_as_in_marian_scores_are_means_of_scores(models, beam_size):
    """The scores of a search are the weighted means of the models' own of the same ids."""
    search = Search(beam_size, 0.0, max_extra_length=3)
    arguments = [ops.convert_to_tensor(x) for x in (SOURCE, np.array([7, 6], "int32"))]
    both = Ensemble(models, weights=[3, 1], normalized=False)
    ids, scores = translation_function(search, both)(*arguments)
    for k in range(beam_size):
        scores_of_models = [
            numpy(score_function(model)(arguments[0], ids[:, k])) for model in models
        ]
        expected = 0.75 * scores_of_models[0] + 0.25 * scores_of_models[1]
        np.testing.assert_allclose(numpy(scores)[:, k], expected, atol=1e-4)
    other, _ = translation_function(search, Ensemble(models))(*arguments)
    assert (numpy(other) != numpy(ids)).any()


def test_bad_input(models, tiny_transformer):
    with pytest.raises(ValueError, match="models must be one or more"):
        Ensemble([])
    for weights in ([1.0], [1.0, 0], [1.0, "x"]):
        with pytest.raises(ValueError, match="weights must be a number above 0 for each of 2"):
            Ensemble(models, weights)
    other = tiny_transformer(source_vocab_size=14, target_vocab_size=14)
    message = "source_vocab_size of a model must be 13, as of the first, got 14"
    with pytest.raises(ValueError, match=message):
        Ensemble([*models, other])
    assert Ensemble(models).config.max_length == 9
