"""Tests of recorded functions and of errors; those of `engine="inductor"` compile and run."""

import shutil

import keras
import pytest
import torch

from keras_transformer.backend.torch import ahead
from keras_transformer.backend.torch.ahead import Packages, _flat, _variables_of


@pytest.fixture
def model():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(2)])
    model.build((None, 4))
    return model


@pytest.mark.parametrize("is_part", [False, True])
def test_a_function_of_weights_and_leaves(model, is_part, monkeypatch):
    """It computes with the weights that it is given or holds, and reads numbers from sizes."""
    second = model.layers[1]
    function = lambda number, tree: {"y": second(tree["x"]) * number}  # noqa: E731
    x = torch.ones(5, 3)
    example = (2, {"x": x})
    variables = _variables_of(function, example)
    assert variables == [second.kernel, second.bias]
    second.kernel.assign(torch.full((3, 2), 2.0))
    monkeypatch.setattr(ahead, "is_kept_by_onednn", lambda x: is_part and x is second.kernel)
    weights = [torch.zeros(2)] if is_part else [torch.ones(3, 2), torch.zeros(2)]
    (found,) = _flat(function, example, variables)(weights, [torch.empty(8, 0), x[:2]])
    assert found.tolist() == [[42.0 if is_part else 21.0] * 2] * 2


@pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++")
def test_what_cannot_be_compiled(model, tmp_path):
    branches = lambda x: x + 1 if x.sum() > 0 else x  # noqa: E731
    examples = [[torch.ones(2)], [torch.ones(3)]]
    refused = pytest.raises(ValueError, match="PyTorch cannot compile the search: ")
    with pytest.warns(UserWarning, match="about a minute"), refused:
        Packages(model, tmp_path / "new").compiled("branches", branches, examples)
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".lock"]


def test_a_missing_compiler(model, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ImportError, match="no-such-compiler is missing: install it, or set CXX"):
        Packages(model, tmp_path)


@pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++")
def test_a_weight_that_is_read_in_another_way(model, tmp_path):
    """It would become a part of the code, which another model may use."""
    hidden = model.layers[1].kernel.value
    examples = [[torch.ones(2, 3)], [torch.ones(4, 3)]]
    with pytest.raises(ValueError, match="it has weights that are no arguments"):
        Packages(model, tmp_path).compiled("hidden", lambda x: x @ hidden, examples)
