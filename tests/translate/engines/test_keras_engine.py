"""The engine of the Keras model: a translator's own, replaced with its model."""

import pytest

from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.translate.engines.keras_engine import KerasEngine
from keras_transformer.translate.translator import Translator
from tests.small_translator import SHORT, TEXTS, make

pytestmark = pytest.mark.once("the translator's own tests run it on each backend")


def test_it_finds_what_the_translator_does(translator):
    engine = KerasEngine(translator.model)
    assert engine.config is translator.config is translator.model.config
    found = engine.search(translator.tokenizer, Request(TEXTS), Search(**SHORT))
    assert found == translator.nbest(TEXTS, **SHORT)
    scores = engine.score(translator.tokenizer, TEXTS, TEXTS, 64)
    assert scores == pytest.approx(translator.score(TEXTS, TEXTS))


def test_a_new_model_is_used(tokenizer, translator):
    other = make(tokenizer, seed=6)
    changed = Translator(translator.model, tokenizer)
    changed.model = other.model
    assert changed.model is other.model
    assert changed.translate(TEXTS, **SHORT) == other.translate(TEXTS, **SHORT)
    assert changed.translate(TEXTS, **SHORT) != translator.translate(TEXTS, **SHORT)
