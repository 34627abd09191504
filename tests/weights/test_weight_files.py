"""Weights to and from files: round trips, all or nothing, and what does not fit."""

import os

import keras
import numpy as np
import pytest
from keras import ops
from safetensors import SafetensorError

from keras_transformer.config import TransformerConfig
from keras_transformer.models import Transformer
from keras_transformer.weights import (
    assign_weights,
    load_weights,
    read_weights,
    save_weights,
    weights_of,
    write_weights,
)


def small(seed=0, **changes):
    keras.utils.set_random_seed(seed)
    sizes = dict(d_model=8, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, num_heads=2)
    return Transformer(TransformerConfig(16, 16, **sizes | changes))


def logits(model):
    ids = np.arange(12).reshape(2, 6)
    return ops.convert_to_numpy(model({"source_ids": ids, "target_ids": ids}))


def test_another_model_takes_the_weights(tmp_path):
    model, other = small(0), small(1)
    assert not np.allclose(logits(model), logits(other))
    write_weights(tmp_path / "weights.safetensors", model)
    load_weights(tmp_path, other)  # the folder stands for its weights.safetensors
    np.testing.assert_array_equal(logits(model), logits(other))


def test_names_are_the_paths_of_the_weights_alone():
    model = small(dropout=0.1)
    names = weights_of(model)
    assert "encoder/block_0/attention/query_key_value/kernel" in names
    assert not any("seed" in name for name in names)
    assert sum(value.size for value in names.values()) == model.count_params()


def test_keeps_scalars_transposed_arrays_and_dtypes(tmp_path):
    weights = {
        "scalar": np.float32(3),
        "transposed": np.arange(6, dtype="float64").reshape(2, 3).T,
        "half": np.ones((1, 2), "float16"),
    }
    save_weights(tmp_path / "w.safetensors", weights)
    read = read_weights(tmp_path / "w.safetensors")
    assert read.keys() == weights.keys()
    for name, value in weights.items():
        assert read[name].dtype == value.dtype and read[name].shape == value.shape
        np.testing.assert_array_equal(read[name], value)


def test_refuses_weights_that_do_not_fit_and_changes_nothing(tmp_path):
    model = small(0)
    before = weights_of(model)
    bigger = small(1, num_encoder_layers=2, d_ff=24)
    write_weights(tmp_path / "bigger.safetensors", bigger)
    with pytest.raises(ValueError) as raised:
        load_weights(tmp_path / "bigger.safetensors", model)
    message = str(raised.value)
    assert "bigger.safetensors does not fit" in message
    assert "unexpected: encoder/block_1/" in message and "more" in message
    assert "encoder/block_0/feed_forward/hidden/kernel (8, 24) instead of (8, 16)" in message
    np.testing.assert_equal(weights_of(model), before)
    with pytest.raises(ValueError, match="missing: "):
        assign_weights({}, model)


def test_refuses_a_file_cut_short(tmp_path):
    path = tmp_path / "weights.safetensors"
    write_weights(path, small())
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        read_weights(path)
    with pytest.raises(FileNotFoundError, match="absent"):
        read_weights(tmp_path / "absent")


def test_refuses_two_weights_of_one_name():
    layers = [keras.layers.Dense(2, name="same") for _ in range(2)]
    x = keras.Input((2,))

    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.two = layers

        def call(self, x):
            return self.two(self.one(x))

    model = Twice()
    model(x)
    for w in model.weights:
        w._path = "same"
    with pytest.raises(ValueError, match="one weight per path"):
        weights_of(model)


def test_a_failure_while_writing_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "weights.safetensors"
    save_weights(path, {"a": np.zeros(2)})

    def fail(weights, file, **options):
        file.write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr("keras_transformer.weights.weight_files.save_file", fail)
    with pytest.raises(OSError, match="No space left"):
        save_weights(path, {"a": np.ones(2)})
    np.testing.assert_array_equal(read_weights(path)["a"], np.zeros(2))
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_file_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise SafetensorError("I/O error: Input/output error (os error 5)")

    monkeypatch.setattr("keras_transformer.weights.weight_files.save_file", fails)
    with pytest.raises(OSError, match=r"w\.safetensors could not be written: I/O error: Input"):
        save_weights(tmp_path / "w.safetensors", {"a": np.ones(3)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_file_of_weights_has_the_mode_of_any_other(tmp_path):
    (tmp_path / "other").touch()
    save_weights(tmp_path / "w.safetensors", {"a": np.ones(3)})
    modes = {path.stat().st_mode for path in tmp_path.iterdir()}
    assert len(modes) == 1
