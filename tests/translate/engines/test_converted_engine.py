"""Engines with a converted model load the Keras model only if it is needed."""

import json

import pytest

from keras_transformer.running.inputs import Request
from keras_transformer.search import TRANSLATE
from keras_transformer.translate.engines.carried import LITERT_ENGINE
from keras_transformer.translate.engines.converted_engine import ConvertedEngine
from keras_transformer.translate.engines.engine import Hypothesis

pytestmark = pytest.mark.once("the engine below computes nothing")


class Echo(ConvertedEngine):
    """Translates each text by itself, and loses the numbers."""

    carried = LITERT_ENGINE

    def hypotheses(self, tokenizer, request, search):
        assert not search.protect
        return [[Hypothesis(text.rstrip("0123456789"), 0.0)] for text in request.texts]


@pytest.fixture
def engine(folder, ours):
    saved = json.loads((folder / "config.json").read_text())
    engine = Echo(folder, saved, ours.tokenizer, "float32")
    engine.config = ours.config
    return engine


def test_the_keras_model_is_loaded_for_lost_numbers(engine, ours):
    search = engine.options({"protect": True}, TRANSLATE)

    def translations(*texts):
        return [x[0].text for x in engine.search(ours.tokenizer, Request([*texts]), search)]

    assert translations("one two", "six") == ["one two", "six"]
    assert "keras_engine" not in vars(engine)
    assert translations("one 17") == ours.translate(["one 17"], protect=True)
    assert "keras_engine" in vars(engine)
    assert engine.model.count_params() == ours.model.count_params()


def test_options_are_refused(engine, ours):
    with pytest.raises(ValueError, match="repetition_penalty must be left out for"):
        engine.options({"repetition_penalty": 2.0}, ("repetition_penalty",))
    request = Request(["one"], constraint=object())
    with pytest.raises(ValueError, match="constraint must be left out for"):
        engine.search(ours.tokenizer, request, engine.options({}, TRANSLATE))
