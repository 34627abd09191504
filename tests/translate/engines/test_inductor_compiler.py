"""The process that compiles a search; what it compiles is tested with its engine."""

import json

import numpy as np
import pytest
from keras import tree

from keras_transformer.search import Search
from keras_transformer.translate.engines import inductor_compiler
from keras_transformer.translate.engines.inductor_compiler import (
    answer,
    compile_elsewhere,
    compiled_search,
)

pytestmark = pytest.mark.once("the engine is one of PyTorch")
SEARCH = Search(beam_size=2, suppress_tokens=(5, 7))


class Inside:
    """A child process that answers in this one."""

    def __init__(self, command, variables):
        assert variables == {"KERAS_BACKEND": "torch"}

    def send(self, message):
        self.request = json.dumps(message)

    def receive(self):
        return answer(json.loads(self.request))

    def stop(self):
        self.request = None


@pytest.mark.parametrize("prefix", [None, np.array([[4]], "int32")])
def test_it_compiles_what_the_engine_looks_for(prefix, ours, tmp_path, monkeypatch):
    names = []

    def compiled(name, function, examples):
        names.append((name, [[(*x.shape,) for x in tree.flatten(y)[1:]] for y in examples]))
        return function

    class Recorder:
        def __init__(self, model, folder):
            assert model is not ours.model and folder == tmp_path
            self.compiled = compiled

    monkeypatch.setattr(inductor_compiler, "packages", Recorder)
    monkeypatch.setattr(inductor_compiler, "Child", Inside)
    arguments = [np.array([[9, 8, 7, 1]], "int32"), np.array([12], "int32"), prefix]
    compile_elsewhere(ours.model, SEARCH, arguments, tmp_path)
    assert compiled_search(compiled, ours.model, SEARCH, arguments)
    start, turn, *again = names
    assert [start, turn] == again and start[0].startswith("start ") and turn[0].startswith("turn ")
    assert compiled_search(lambda *x: None, ours.model, SEARCH, arguments) is None


def test_an_error_of_the_process(ours, tmp_path, monkeypatch):
    def refuse(model, folder):
        raise OSError("no compiler today")

    monkeypatch.setattr(inductor_compiler, "packages", refuse)
    monkeypatch.setattr(inductor_compiler, "Child", Inside)
    arguments = [np.array([[9, 8, 1]], "int32"), np.array([12], "int32"), None]
    with pytest.raises(ValueError, match="no compiler today"):
        compile_elsewhere(ours.model, SEARCH, arguments, tmp_path)
