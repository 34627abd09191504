"""Tests of recorded functions and of errors; those of `engine="inductor"` compile and run."""

import io
import os
import shutil
import zipfile

import keras
import pytest
import torch

from keras_transformer.backend.torch import packages
from keras_transformer.backend.torch.packages import Packages, _flat, _variables_of
from keras_transformer.system.locks import waiting


@pytest.fixture
def model():
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dense(2)])
    model.build((None, 4))
    return model


def test_a_function_of_leaves(model):
    """It computes with the weights as they were, and reads numbers from sizes."""
    second = model.layers[1]
    function = lambda number, tree: {"y": second(tree["x"]) * number}  # noqa: E731
    x = torch.ones(5, 3)
    example = (2, {"x": x})
    second.kernel.assign(torch.full((3, 2), 2.0))
    variables = _variables_of(function, example)
    assert variables == [second.kernel, second.bias]
    recorded = _flat(function, example, variables)
    assert [name for name, _ in recorded.named_buffers()] == ["weight_0", "weight_1"]
    (found,) = recorded([torch.empty(8, 0), x[:2]])
    assert found.tolist() == [[42.0] * 2] * 2


def test_a_damaged_package_is_compiled_again(model, tmp_path, monkeypatch):
    compiled = []

    def compile_package(self, function, leaves, path):
        compiled.append(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("code", bytes(range(256)) * 16)

    monkeypatch.setattr(Packages, "_compile", compile_package)
    monkeypatch.setattr(packages, "_require_compiler", lambda: None)
    monkeypatch.setattr(packages.private, "package_runner", lambda path, weights: path.read_bytes)
    examples = [[torch.ones(2, 4)], [torch.ones(3, 4)]]

    def load():
        Packages(model, tmp_path).compiled("model", model, examples)
        return len(compiled)

    assert load() == load() == 1
    (path,) = tmp_path.glob("*.pt2")
    whole = path.read_bytes()

    def kept():
        return Packages(model, tmp_path).kept("model", model, examples)

    assert kept() is not None
    with waiting(path.with_suffix(".lock")):  # another process compiles
        assert kept() is None
    assert Packages(model, tmp_path).kept("other", model, examples) is None
    for times, damaged in enumerate((whole[:-9], whole[:99], b"", whole.replace(b"abc", b"abd"))):
        assert damaged != whole
        path.write_bytes(damaged)
        assert kept() is None
        assert load() == load() == times + 2
        assert zipfile.ZipFile(path).read("code") == zipfile.ZipFile(io.BytesIO(whole)).read("code")
    (old := tmp_path / "old.pt2").write_bytes(whole)
    os.utime(old, (0, 0))
    load()
    assert old.exists()
    monkeypatch.setattr(packages, "MOST_CACHED", len(whole))
    load()
    assert path.exists() and not old.exists()


@pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++")
def test_what_cannot_be_compiled(model, tmp_path):
    branches = lambda x: x + 1 if x.sum() > 0 else x  # noqa: E731
    examples = [[torch.ones(2)], [torch.ones(3)]]
    refused = pytest.raises(ValueError, match="PyTorch cannot compile the search: ")
    with refused:
        Packages(model, tmp_path / "new").compiled("branches", branches, examples)
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".lock"]


def test_a_missing_compiler(model, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ImportError, match="no-such-compiler is missing: install it, or set CXX"):
        Packages(model, tmp_path)


@pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++")
def test_a_weight_that_is_read_in_another_way(model, tmp_path):
    """It would become a part of code that another model may use."""
    hidden = model.layers[1].kernel.value
    examples = [[torch.ones(2, 3)], [torch.ones(4, 3)]]
    with pytest.raises(ValueError, match="it reads weights past their variables"):
        Packages(model, tmp_path).compiled("hidden", lambda x: x @ hidden, examples)


def test_weights_beside_the_code(model, tmp_path, monkeypatch):
    """They come back as they lay in memory, where vectors do not cross lines, and once."""
    monkeypatch.setattr(packages, "_require_compiler", lambda: None)
    numbers = torch.arange(24.0)
    packed = {
        "rows": numbers.view(4, 6),
        "columns": numbers.view(4, 6).t(),
        "spread": numbers[3:9:2].expand(5, 3),
        "one": numbers[7],
    }
    function = torch.nn.Module()
    function.register_buffer("weight_0", torch.empty(17)[1:])
    function.register_buffer("weight_1", torch.empty(16))
    compiled, found = Packages(model, tmp_path), []
    for i, weights in enumerate((packed, {"same": packed["columns"], "one": packed["one"]})):
        with zipfile.ZipFile(tmp_path / f"{i}.pt2", "w") as archive:
            archive.writestr("package/code", "")
        packages._add_weights(tmp_path / f"{i}.pt2", weights)
        found.append(compiled._weights_of(tmp_path / f"{i}.pt2", function))
        assert found[i].keys() == {"weight_0", "weight_1", *weights}
        for name, weight in weights.items():
            assert found[i][name].equal(weight) and found[i][name].stride() == weight.stride()
        assert all(x.data_ptr() % 64 == 0 for x in found[i].values())
    assert found[0]["weight_1"] is function.weight_1
    assert found[1]["same"] is found[0]["columns"] and found[1]["one"] is found[0]["one"]
