"""Learned metrics: what is encoded, how often, and errors. `tests/hub` tests the scores."""

import numpy as np
import pytest

from keras_transformer.tasks.learned_metric import LearnedMetric
from tests.tasks.small_metric import small_metric

SOURCES = ["the dog", "the dog", "two cats", "a cat sleeps"]
TRANSLATIONS = ["der Hund", "den Hund", "zwei Katzen", "der Hund"]
REFERENCES = ["der Hund", "der Hund", "eine Katze", "eine Katze schlaeft"]


@pytest.mark.once("batches are made before any tensor")
@pytest.mark.parametrize(("name", "distinct"), [("regression", 8), ("kiwi", 4), ("unified", 12)])
def test_each_distinct_text_is_encoded_once(name, distinct, monkeypatch):
    metric, encoded = small_metric(name), []
    run = LearnedMetric._run

    def counted(self, ids, *arguments):
        encoded.extend(map(tuple, ids))
        return run(self, ids, *arguments)

    monkeypatch.setattr(LearnedMetric, "_run", counted)
    scores = metric.score(SOURCES * 2, TRANSLATIONS * 2, REFERENCES * 2)
    assert len(encoded) == len(set(encoded)) == distinct
    np.testing.assert_array_equal(scores[:4], scores[4:])
    for i in range(4):  # the score of a text does not depend on the others
        texts = ([rows[i]] for rows in (SOURCES, TRANSLATIONS, REFERENCES))
        np.testing.assert_allclose(metric.score(*texts, tokens_per_batch=1), scores[i], atol=1e-5)


@pytest.mark.once("errors before any computation")
def test_errors():
    metric = small_metric("regression")
    with pytest.raises(ValueError, match="references must be given: the metric compares"):
        metric.score(SOURCES, TRANSLATIONS)
    with pytest.raises(ValueError, match="the number of references must be 4, got 1"):
        metric.score(SOURCES, TRANSLATIONS, ["der Hund"])
    with pytest.raises(ValueError, match="tokens_per_batch must be a whole number of at least 1"):
        metric.score(SOURCES, TRANSLATIONS, REFERENCES, tokens_per_batch=0)
    assert metric.score([], [], []).shape == small_metric("kiwi").score([], []).shape == (0,)
