"""Masked accuracy and perplexity against NumPy, over several batches and in `fit`."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.metrics import MaskedAccuracy, Perplexity
from tests.backends import cases

VOCABULARY = 7


def update(metric, *arrays):
    metric.update_state(*(x if x is None else ops.convert_to_tensor(x) for x in arrays))
    return float(metric.result())


def batches(rng, sizes):
    """Labels, logits and token weights: batches of other sizes and numbers of tokens."""
    for batch, length in sizes:
        labels = rng.integers(0, VOCABULARY, (batch, length)).astype("int32")
        logits = rng.standard_normal((batch, length, VOCABULARY)).astype("float32")
        logits += 2 * np.eye(VOCABULARY, dtype="float32")[labels] * (rng.random() < 0.5)
        yield labels, logits, rng.random((batch, length)).astype("float32")


def expected(metric, labels, logits, weights=None, pad_id=0):
    """The same, over all the tokens in one list."""
    weights = np.ones(len(labels)) if weights is None else weights
    weights = weights * (labels != pad_id)
    if isinstance(metric, MaskedAccuracy):
        return ((logits.argmax(-1) == labels) * weights).sum() / weights.sum()
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    chosen = probabilities[np.arange(len(labels)), labels]
    return np.exp(-(np.log(chosen) * weights).sum() / weights.sum())


def flat(parts):
    return np.concatenate([part.reshape(-1, *part.shape[2:]) for part in parts])


@pytest.mark.parametrize("metric_class", [MaskedAccuracy, Perplexity])
@pytest.mark.parametrize(
    "pad_id,weighted", cases([*itertools.product([0, 3], [False, True])], (3, True))
)
def test_is_the_mean_over_all_tokens_of_all_updates(rng, metric_class, pad_id, weighted):
    metric = metric_class(pad_id=pad_id)
    parts = list(batches(rng, [(2, 5), (3, 4), (1, 2)]))
    for labels, logits, weights in parts:
        actual = update(metric, labels, logits, weights if weighted else None)
    labels, logits, weights = (flat(part) for part in zip(*parts, strict=True))
    value = expected(metric, labels, logits, weights if weighted else None, pad_id)
    assert actual == pytest.approx(value, rel=1e-5)
    metric.reset_state()
    value = expected(metric, labels, logits, None, pad_id)
    assert update(metric, labels[None], logits[None]) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("metric_class", [MaskedAccuracy, Perplexity])
def test_weights_a_sentence(rng, metric_class):
    ((labels, logits, _),) = batches(rng, [(2, 5)])
    weight = np.array([1.0, 0.25], "float32")
    metric = metric_class()
    value = expected(metric, flat([labels]), flat([logits]), np.repeat(weight, 5))
    assert update(metric, labels, logits, weight[:, None]) == pytest.approx(value, rel=1e-5)
    metric.reset_state()
    assert update(metric, labels, logits, weight) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("metric_class", [MaskedAccuracy, Perplexity])
def test_takes_arrays_as_metrics_of_keras_do(rng, metric_class):
    ((labels, logits, _),) = batches(rng, [(2, 5)])
    metric = metric_class()
    metric.update_state(labels, logits)
    value = expected(metric, flat([labels]), flat([logits]))
    assert float(metric.result()) == pytest.approx(value, rel=1e-5)


def test_perplexity_of_an_even_guess_is_the_vocabulary():
    labels, logits = np.array([[1, 2, 0]], "int32"), np.zeros((1, 3, VOCABULARY), "float32")
    assert update(Perplexity(), labels, logits) == pytest.approx(VOCABULARY, rel=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_in_fit_and_evaluate(rng):
    """The labels are the inputs, so the logits are the rows of one table."""
    ids = rng.integers(0, VOCABULARY, (10, 5)).astype("int32")
    ids[3:5, 2:] = 0
    inputs = keras.Input((None,), dtype="int32")
    table = keras.layers.Embedding(VOCABULARY, VOCABULARY)
    model = keras.Model(inputs, table(inputs))
    model.compile(
        keras.optimizers.SGD(0.5),
        LabelSmoothedCrossentropy(0.1),
        metrics=[MaskedAccuracy(), Perplexity()],
    )
    history = model.fit(ids, ids, batch_size=4, epochs=1, verbose=0).history
    assert {"loss", "accuracy", "perplexity"} <= set(history)
    logs = model.evaluate(ids, ids, batch_size=4, verbose=0, return_dict=True)
    logits = ops.convert_to_numpy(table.embeddings)[ids].reshape(-1, VOCABULARY)
    for metric in (MaskedAccuracy(), Perplexity()):
        value = expected(metric, ids.reshape(-1), logits)
        assert logs[metric.name] == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("metric_class", [MaskedAccuracy, Perplexity])
def test_serialization(metric_class):
    metric = metric_class(pad_id=4, name="mine")
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(metric))
    assert isinstance(again, metric_class) and again.get_config() == metric.get_config()
    assert (again.pad_id, again.name) == (4, "mine")
