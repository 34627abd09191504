"""Minimum Bayes risk: the candidate that agrees most with the others."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_transformer.translate.minimum_bayes_risk import chrf, most_agreed, translate_by_risk
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make
from tests.tasks.small_metric import small_metric


@pytest.fixture(scope="module")
def small():
    return make(made_tokenizer())


def equal(text, reference):
    return float(text == reference)


@pytest.mark.once("texts: no tensor is read")
def test_the_most_agreed_by_hand():
    assert most_agreed(["a", "b", "b"], equal) == ("b", 2 / 3)
    assert most_agreed(["a", "b"], equal) == ("a", 1 / 2)  # of equal ones the first
    candidates = ["the dog runs", "the dog ran", "a cat"]
    text, score = most_agreed(candidates)
    assert text == "the dog runs"
    assert score == pytest.approx(sum(chrf(text, x) for x in candidates) / 3)
    assert chrf("same", "same") == pytest.approx(100) and chrf("abc", "xyz") == 0
    with pytest.raises(ValueError, match="candidates must be one or more"):
        most_agreed([])


@pytest.mark.once("texts: what finds them has its own tests")
def test_from_nbest_lists_and_samples(small):
    options = dict(min_length=2, **SHORT)
    found = translate_by_risk(small, TEXTS, 3, utility=equal, **options)
    # Hypotheses of a beam differ, so that all agree equally: the best one is the first.
    assert found == small.translate(TEXTS, beam_size=3, **options)
    drawn = [small.sample(TEXTS, seed=4 + i, **options) for i in range(3)]
    found = translate_by_risk(small, TEXTS, 3, source="samples", seed=4, **options)
    expected = [most_agreed(row)[0] for row in zip(*drawn, strict=True)]
    assert found == expected != drawn[0]
    assert translate_by_risk(small, [], 2) == []


@pytest.mark.once("scores have their own tests")
def test_a_learned_metric_compares_all_pairs():
    metric = small_metric("regression")
    lists = {"the dog": ["der Hund", "den Hund", "der Hund"], "two cats": ["zwei Katzen", "Katzen"]}

    def sample(texts, seed):
        return [lists[text][seed % len(lists[text])] for text in texts]

    drawn = translate_by_risk(
        SimpleNamespace(sample=sample), list(lists), 3, source="samples", utility=metric
    )
    for text, row in zip(drawn, lists, strict=True):
        row, source = [lists[row][i % len(lists[row])] for i in range(3)], row
        means = [metric.score([source] * 3, [x] * 3, row).mean() for x in row]
        assert text == row[int(np.argmax(means))]
    with pytest.raises(ValueError, match="utility must be one that compares with references"):
        translate_by_risk(None, ["a"], 2, utility=small_metric("kiwi"))


@pytest.mark.once("errors before any computation")
def test_bad_input(small):
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        translate_by_risk(small, TEXTS, 0)
    with pytest.raises(ValueError, match="source must be one of .*, got 'beam'"):
        translate_by_risk(small, TEXTS, 2, source="beam")
    with pytest.raises(TypeError, match="min_p is not an option here"):
        translate_by_risk(small, TEXTS, 2, min_p=0.1)
