"""The interface of engines: each engine has its methods."""

import inspect

import pytest

from keras_transformer.translate import engines
from keras_transformer.translate.engines.ctranslate2_engine import CTranslate2Engine
from keras_transformer.translate.engines.engine import Engine
from keras_transformer.translate.engines.exported import OnnxEngine, SavedModelEngine
from keras_transformer.translate.engines.litert_engine import LiteRTEngine


@pytest.mark.once("names of arguments")
@pytest.mark.parametrize("name", ["options", "search", "score"])
def test_each_engine_has_the_methods_of_the_interface(name):
    expected = [x for x in inspect.signature(getattr(Engine, name)).parameters if x != "self"]
    others = CTranslate2Engine, LiteRTEngine, OnnxEngine, SavedModelEngine
    for engine in (engines.KerasEngine, engines.InductorEngine, *others):
        names = [x for x in inspect.signature(getattr(engine, name)).parameters if x != "self"]
        assert names == expected, engine
