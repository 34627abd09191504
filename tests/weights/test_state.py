"""The full state of a training: what is restored, which state is the latest, damaged files."""

import json
import shutil

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import random_state, set_random_state
from keras_transformer.system.files import write_json
from keras_transformer.weights.state import (
    epoch_paths,
    latest,
    read_state,
    restore_metrics,
    restore_state,
    write_state,
)

STATE = {"run": {"seed": 3}, "history": [{"loss": 1.5}], "step": 2, "seconds": 0.5}
X = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")
Y = X.sum(1, keepdims=True)


def new_model(seed, trained=True, width=3):
    """A model with dropout, whose seed is part of the state, and metrics."""
    keras.utils.set_random_seed(seed)
    layers = [
        keras.layers.Dense(width, name="hidden"),
        keras.layers.Dropout(0.5),
        keras.layers.Dense(1, name="output"),
    ]
    model = keras.Sequential(layers, name="model")  # weights are saved by their names
    model.build((None, 4))
    model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"])
    if trained:
        for _ in range(2):
            model.train_on_batch(X, Y)
    return model


def values(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [ops.convert_to_numpy(variable) for variable in variables]


@pytest.fixture(scope="module")
def model():
    return new_model(0)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("states") / "unfinished"
    write_state(path, model, STATE, metrics=True)
    return path


@pytest.mark.once("made of parts that are tested under each backend")
def test_another_model_gets_the_whole_state(model, saved):
    assert read_state(saved) == STATE
    other = new_model(1)
    set_random_state(restore_state(saved, other))
    restore_metrics(saved, other)
    for one, two in zip(values(model), values(other), strict=True):
        np.testing.assert_array_equal(one, two)


def test_training_continues_bit_for_bit(tmp_path):
    models = [new_model(2), new_model(3, trained=False)]
    write_state(tmp_path / "state", models[0], STATE)
    random = restore_state(tmp_path / "state", models[1])
    losses = []
    for model in models:
        set_random_state(random)
        model.reset_metrics()
        losses.append([model.train_on_batch(X, Y) for _ in range(2)])
    assert losses[0] == losses[1]
    for one, two in zip(*map(values, models), strict=True):
        np.testing.assert_array_equal(one, two)


def test_restoring_keeps_the_random_state_of_the_backend(saved):
    other = new_model(1)
    before = random_state()
    restore_state(saved, other)
    after = random_state()
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])


@pytest.mark.once("files: no tensor differs")
def test_the_latest_state(tmp_path):
    assert latest(tmp_path) is None and epoch_paths(tmp_path) == []

    def write(name, epochs):
        write_json(tmp_path / name / "state.json", {"run": {}, "history": [{}] * epochs})

    write("unfinished", 0)
    assert latest(tmp_path).name == "unfinished"
    write("epoch-0009", 9)
    write("epoch-0010", 10)
    (tmp_path / "epoch-0011").mkdir()  # has no state
    write("epoch-last", 12)  # has no number
    assert [path.name for path in epoch_paths(tmp_path)] == ["epoch-0009", "epoch-0010"]
    assert latest(tmp_path).name == "epoch-0010"  # the unfinished one is older
    write("unfinished", 10)
    assert latest(tmp_path).name == "unfinished"


@pytest.mark.once("files: no tensor differs")
@pytest.mark.parametrize(
    "change",
    [
        {"run": None}, {"history": {}}, {"history": [1]}, {"history": [{"loss": "low"}]},
        {"step": "2"}, {"seconds": "long"},
    ],
    ids=str,
)  # fmt: skip
def test_a_broken_state_names_its_file(tmp_path, change):
    write_json(tmp_path / "state.json", STATE | change)
    with pytest.raises(ValueError, match=r"state\.json must be an object with the run"):
        read_state(tmp_path)


@pytest.mark.once("files: no tensor differs")
def test_a_failure_while_writing_keeps_the_old_state(model, saved, tmp_path):
    path = shutil.copytree(saved, tmp_path / "state")
    before = {x.name: x.read_bytes() for x in path.iterdir()}
    with pytest.raises(TypeError):
        write_state(path, model, STATE | {"run": {"x": object()}})
    assert {x.name: x.read_bytes() for x in path.iterdir()} == before


@pytest.mark.once("files: no tensor differs")
def test_the_state_of_another_model_changes_nothing(saved):
    other = new_model(4, width=5)
    before = values(other)
    with pytest.raises(ValueError, match=f"does not fit: .*remove {saved} to resume"):
        restore_state(saved, other)
    for one, two in zip(before, values(other), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.once("files: no tensor differs")
def test_a_missing_file_is_named(saved, tmp_path):
    path = shutil.copytree(saved, tmp_path / "state")
    for name, restore in (("metrics", restore_metrics), ("optimizer", restore_state)):
        (path / f"{name}.safetensors").unlink()
        with pytest.raises(FileNotFoundError, match=rf"{name}\.safetensors.*remove {path} to"):
            restore(path, new_model(1))
    assert json.loads((path / "state.json").read_text()) == STATE
