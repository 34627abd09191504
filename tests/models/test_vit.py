"""ViT: saved, trained, its positions interpolated; what is refused."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import adam
from keras_transformer.layers import resized_positions
from keras_transformer.models import ViT, ViTConfig, with_classes

CONFIG = ViTConfig(3, image_size=8, patch_size=4, d_model=8, num_layers=1, num_heads=2)


def images(config, seed=0):
    shape = (2, *config.image_size, config.num_channels)
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def test_same_size_changes_no_position(rng):
    positions = rng.standard_normal((7, 4))
    np.testing.assert_allclose(resized_positions(positions, (2, 3), (2, 3)), positions)


@pytest.mark.once("test_transformer.py saves a model under each backend")
def test_saved_and_loaded(saved_and_loaded, randomize):
    model = randomize(ViT(CONFIG))
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    pixels = images(CONFIG)
    found, before = (ops.convert_to_numpy(x(pixels)) for x in (again, model))
    np.testing.assert_allclose(found, before, atol=1e-6)


def test_a_new_classifier(randomize):
    """The copy has the same hidden states, which are the output of a model without classes."""
    bare = randomize(ViT(dataclasses.replace(CONFIG, num_classes=0)))
    other, pixels = with_classes(bare, 3), images(CONFIG)
    assert ops.convert_to_numpy(other(pixels)).tolist() == [[0.0] * 3] * 2
    hidden = ops.convert_to_numpy(bare(pixels))
    np.testing.assert_array_equal(ops.convert_to_numpy(with_classes(other, 0)(pixels)), hidden)


@pytest.mark.once("made of parts that are tested under each backend")
def test_trains_in_mixed_precision():
    model = ViT(dataclasses.replace(CONFIG, dropout=0.1), dtype="mixed_bfloat16")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(adam(1e-2), loss)
    losses = model.fit(images(CONFIG), np.array([0, 2]), epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]


@pytest.mark.once("test_transformer.py saves a model under each backend")
def test_a_new_classifier_of_a_distilled_model(randomize, saved_and_loaded):
    config = dataclasses.replace(CONFIG, distillation="head")
    model, pixels = randomize(ViT(config)), images(CONFIG)
    bare = with_classes(model, 0)
    assert bare.config.distillation == "token" and bare(pixels).shape[1] == 2 + 4
    logits = ops.convert_to_numpy(saved_and_loaded(model)(pixels))
    np.testing.assert_allclose(logits, ops.convert_to_numpy(model(pixels)), atol=1e-6)
    with pytest.raises(ValueError, match=r"distillation must be one of .*'token'\), got 'head'"):
        dataclasses.replace(config, num_classes=0)


@pytest.mark.parametrize("shape", [(2, 9, 8, 3), (2, 8, 8, 1), (2, 3, 8, 8)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"images must be \(batch, 8, 8, 3\), got \(2, "):
        ViT(CONFIG)(np.zeros(shape, "float32"))


CASES = {
    "num_classes": -1, "image_size": 9, "patch_size": 0, "num_channels": 0, "d_model": 0,
    "d_ff": 1.5, "num_layers": 0, "num_heads": -1, "dropout": 1.0, "activation": "mish",
    "epsilon": 0, "num_registers": -1, "pooling": "mean", "layer_scale": 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_bad_values_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be .*, got {CASES[name]!r}"):
        dataclasses.replace(CONFIG, **{name: CASES[name]})
