"""Ensembles of translators: searches and scores, and what does not fit."""

import numpy as np
import pytest

from keras_transformer import Translator, ensemble
from keras_transformer.text import SentencePieceTokenizer
from tests.small_translator import SHORT, TEXTS, make


@pytest.fixture(scope="module")
def members(tokenizer):
    return [make(tokenizer, seed) for seed in (5, 6)]


@pytest.mark.once("the search of the test below, which each backend runs")
def test_a_translator_twice_is_itself(members, alone):
    twice = ensemble([members[0]] * 2)
    assert twice.translate(TEXTS, **SHORT) == list(alone.values())


@pytest.mark.once("tests/models/test_model_ensemble.py searches under each")
def test_two_translators_are_another_one(members):
    both, options = ensemble(members), dict(min_length=3, **SHORT)
    best = both.translate(TEXTS, **options)
    singles = [one.translate(TEXTS, **options) for one in members]
    assert singles[0] != best != singles[1] != singles[0]
    assert [both.translate([text], **options)[0] for text in TEXTS] == best
    # Its probabilities are the renormalized geometric means, so at least the plain ones.
    alone = np.mean([one.score(TEXTS, best) for one in members], axis=0)
    assert (both.score(TEXTS, best) > alone).all()


@pytest.mark.once("an error before any computation")
def test_bad_input(members, tmp_path):
    with pytest.raises(ValueError, match="translators must be one or more"):
        ensemble([])
    texts = ["one two"] * 4
    other = SentencePieceTokenizer.train(texts, texts, vocab_size=56, byte_fallback=False)
    with pytest.raises(ValueError, match="the tokenizer of a translator must be .*, that of the f"):
        ensemble([members[0], make(other)])
    foreign = Translator(members[1].model, members[1].tokenizer, "en", "yy")
    with pytest.raises(ValueError, match="the languages of a translator must be .*'xx'.*, got"):
        ensemble([members[0], foreign])
    with pytest.raises(ValueError, match="an ensemble cannot be saved"):
        ensemble(members).save(tmp_path)
    assert not list(tmp_path.iterdir())
