"""Tests of keras_transformer.translate.dual_cross_entropy."""

import math

import numpy as np
import pytest

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.dual_cross_entropy import cross_entropies, dual_scores
from keras_transformer.translate.translator import Translator

SOURCES = ["one two three", "two", "three three one two"]
TARGETS = ["three two one", "one", "two one"]


@pytest.fixture(scope="module")
def translators(tiny_transformer):
    tokenizer = SentencePieceTokenizer.train(SOURCES, TARGETS, vocab_size=24, byte_fallback=False)
    size = tokenizer.source_vocab_size
    sizes = dict(source_vocab_size=size, target_vocab_size=size, max_length=20)
    languages = [("en", "de"), ("de", "en")]
    return [Translator(tiny_transformer(**sizes), tokenizer, *x) for x in languages]


@pytest.mark.once("made of parts that are tested under each backend")
def test_entropies_are_means_over_the_tokens_and_eos(translators):
    forward, _ = translators
    sums = forward.score(SOURCES, TARGETS)
    lengths = [len(x) for x in forward.tokenizer.encode_target(TARGETS)]  # with EOS
    expected = [-one / length for one, length in zip(sums, lengths, strict=True)]
    np.testing.assert_allclose(cross_entropies(forward, SOURCES, TARGETS), expected, rtol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_scores_are_those_of_the_paper(translators):
    forward, reverse = translators
    found = dual_scores(forward, reverse, SOURCES, TARGETS)
    one = cross_entropies(forward, SOURCES, TARGETS)
    other = cross_entropies(reverse, TARGETS, SOURCES)
    for score, a, b in zip(found, one, other, strict=True):
        assert score == pytest.approx(math.exp(-abs(a - b) - (a + b) / 2))
        assert 0 < score <= 1
    np.testing.assert_allclose(dual_scores(reverse, forward, TARGETS, SOURCES), found, rtol=1e-6)


def test_texts_that_are_too_long_have_no_score(translators):
    long = "one two three " * 20
    found = dual_scores(*translators, [SOURCES[0], long, SOURCES[0]], [*TARGETS[:2], long])
    assert found[0] > 0 and list(found[1:]) == [0, 0]
    assert list(dual_scores(*translators, [long], [long])) == [0]
    assert dual_scores(*translators, [], []).shape == (0,)


def test_what_does_not_fit_is_refused(translators):
    forward, reverse = translators
    with pytest.raises(ValueError, match="reverse must translate from de to en, .* from en to de"):
        dual_scores(forward, forward, SOURCES, TARGETS)
    with pytest.raises(ValueError, match="same length, got 3 and 1"):
        dual_scores(forward, reverse, SOURCES, TARGETS[:1])
