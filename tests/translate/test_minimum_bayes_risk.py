"""Minimum Bayes risk: the candidate that agrees most with the others."""

import pytest

from keras_transformer.translate.minimum_bayes_risk import chrf, most_agreed, translate_by_risk
from tests.small_translator import SHORT, TEXTS, made_tokenizer, make


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


@pytest.mark.once("errors before any computation")
def test_bad_input(small):
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        translate_by_risk(small, TEXTS, 0)
    with pytest.raises(ValueError, match="source must be one of .*, got 'beam'"):
        translate_by_risk(small, TEXTS, 2, source="beam")
    with pytest.raises(TypeError, match="min_p is not an option here"):
        translate_by_risk(small, TEXTS, 2, min_p=0.1)
