"""Patches of images, by hand, and positions for other sizes."""

import keras
import numpy as np
import pytest
import torch
from keras import ops

from keras_transformer.layers import PatchEmbedding, resized_positions

SIZE, PATCH = (6, 4), 2


@pytest.fixture
def layer(randomize):
    layer = PatchEmbedding(5, SIZE, PATCH)
    layer.build((None, *SIZE, 3))
    return randomize(layer)


def test_equation_1(layer, rng):
    images = rng.standard_normal((2, *SIZE, 3)).astype("float32")
    token, positions, kernel, bias = (
        ops.convert_to_numpy(x)
        for x in (layer.class_token, layer.positions, layer.patches.kernel, layer.patches.bias)
    )
    expected = [np.repeat(token[None, 0], 2, axis=0) + positions[0]]
    for row in range(3):
        for column in range(2):
            patch = images[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            x = patch.reshape(2, -1) @ kernel.reshape(-1, 5) + bias
            expected.append(x + positions[1 + 2 * row + column])
    found = ops.convert_to_numpy(layer(images))
    np.testing.assert_allclose(found, np.stack(expected, axis=1), atol=1e-5)


def test_registers_have_no_positions(layer, randomize, rng):
    images = rng.standard_normal((2, *SIZE, 3)).astype("float32")
    other = PatchEmbedding(5, SIZE, PATCH, num_registers=2)
    other.build((None, *SIZE, 3))
    randomize(other)
    for name in ("class_token", "positions"):
        getattr(other, name).assign(getattr(layer, name))
    other.patches.set_weights(layer.patches.get_weights())
    expected, found = (ops.convert_to_numpy(x(images)) for x in (layer, other))
    np.testing.assert_array_equal(np.delete(found, (1, 2), axis=1), expected)
    np.testing.assert_array_equal(found[1, 1:3], ops.convert_to_numpy(other.registers))


def test_dropout_only_in_training(rng):
    layer = PatchEmbedding(5, SIZE, PATCH, dropout=0.5)
    images = rng.standard_normal((2, *SIZE, 1)).astype("float32")
    zeros = [np.mean(ops.convert_to_numpy(layer(images, training=x)) == 0) for x in (False, True)]
    assert zeros[0] == 0 and 0.2 < zeros[1] < 0.8


def test_config_makes_it_again():
    layer = PatchEmbedding(5, SIZE, PATCH, dropout=0.5, name="patches_of_images")
    config = layer.get_config()
    assert PatchEmbedding.from_config(config).get_config() == config


def test_other_shapes_are_refused(layer):
    with pytest.raises(ValueError, match=r"images must be \(batch, 6, 4, 3\), got \(1, 4, 6, 3\)"):
        layer(np.zeros((1, 4, 6, 3), "float32"))


@pytest.mark.once("NumPy")
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("after", [(3, 7), (6, 8), (2, 1), (9, 3), (1, 4)])
def test_positions_as_pytorch_interpolates(rng, after, antialias):
    positions = rng.standard_normal((1 + 3 * 7, 5)).astype("float32")
    plane = torch.tensor(positions[1:].reshape(1, 3, 7, 5)).permute(0, 3, 1, 2)
    options = dict(size=after, mode="bicubic", align_corners=False, antialias=antialias)
    expected = torch.nn.functional.interpolate(plane, **options).permute(0, 2, 3, 1)
    found = resized_positions(positions, (3, 7), after, antialias)
    np.testing.assert_array_equal(found[0], positions[0])
    np.testing.assert_allclose(found[1:], expected.reshape(-1, 5).numpy(), atol=1e-5)


def test_mixed_precision(rng):
    layer = PatchEmbedding(5, SIZE, PATCH, dtype="mixed_bfloat16")
    found = layer(rng.standard_normal((2, *SIZE, 1)).astype("float32"))
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
