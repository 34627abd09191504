"""The inputs of a speech encoder, beside PyTorch's, and of a decoder of frames, by hand."""

import numpy as np
import pytest
import torch
from keras import ops

from keras_transformer.layers import AudioEmbedding, FramePrenet, length_mask, sinusoids


def built(randomize, width=6, mels=4, max_frames=20):
    layer = AudioEmbedding(width, max_frames)
    layer.build((None, None, mels))
    return randomize(layer)


@pytest.mark.parametrize("frames", [8, 9, 1])
def test_as_pytorch_computes(randomize, rng, frames):
    layer = built(randomize)
    features = rng.standard_normal((2, frames, 4)).astype("float32")
    x = torch.tensor(features).transpose(1, 2)
    for stride, ours in ((1, layer.first), (2, layer.second)):
        kernel = torch.tensor(ops.convert_to_numpy(ours.kernel)).permute(2, 1, 0)
        bias = torch.tensor(ops.convert_to_numpy(ours.bias))
        x = torch.nn.functional.conv1d(x, kernel, bias, stride=stride, padding=1)
        x = torch.nn.functional.gelu(x)
    positions = ops.convert_to_numpy(layer.positions)[: x.shape[2]]
    expected = x.transpose(1, 2).numpy() + positions
    np.testing.assert_allclose(ops.convert_to_numpy(layer(features)), expected, atol=1e-5)


def test_positions_are_sinusoids_that_are_not_trained():
    layer = AudioEmbedding(6, 19)
    layer.build((None, None, 4))
    expected = sinusoids(10, 6, "sinusoidal_tensor2tensor")
    np.testing.assert_array_equal(ops.convert_to_numpy(layer.positions), expected)
    assert not any("positions" in weight.path for weight in layer.trainable_weights)


def test_a_padded_clip_is_as_alone(randomize, rng):
    layer = built(randomize)
    features = rng.standard_normal((3, 12, 4)).astype("float32")
    lengths = np.array([5, 8, 12], "int32")
    together = layer(features, num_frames=ops.convert_to_tensor(lengths))
    for row, length in enumerate(lengths):
        alone = ops.convert_to_numpy(layer(features[row : row + 1, :length]))
        found = ops.convert_to_numpy(together)[row : row + 1, : -(-length // 2)]
        np.testing.assert_allclose(found, alone, atol=1e-5)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
def test_life_in_a_model(round_trips, rng):
    features = rng.standard_normal((2, 7, 4)).astype("float32")
    round_trips(AudioEmbedding(6, 20, dropout=0.1, name="audio"), features=features)


def test_length_mask():
    mask = length_mask(ops.convert_to_tensor(np.array([2, 0, 3], "int32")), 3)
    expected = [[[[True, True, False]]], [[[False] * 3]], [[[True] * 3]]]
    np.testing.assert_array_equal(ops.convert_to_numpy(mask), expected)


def test_the_prenet_by_hand(randomize, rng):
    layer = FramePrenet(6, 9, hidden=3)
    layer.build((None, None, 4))
    randomize(layer)
    x = frames = rng.standard_normal((2, 5, 4)).astype("float32")
    for dense in layer.hidden:
        x = np.maximum(x @ ops.convert_to_numpy(dense.kernel) + ops.convert_to_numpy(dense.bias), 0)
    kernel, bias = map(ops.convert_to_numpy, layer.output_layer.weights)
    alpha = float(ops.convert_to_numpy(layer.alpha))
    expected = x @ kernel + bias + alpha * sinusoids(9, 6)[2:7]
    found = ops.convert_to_numpy(layer(frames, index=2))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert abs(alpha - 1) > 0.01 and layer.alpha.trainable


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
def test_the_prenet_in_a_model(round_trips, rng):
    frames = rng.standard_normal((2, 7, 4)).astype("float32")
    round_trips(FramePrenet(6, 20, hidden=3, dropout=0.2, name="prenet"), frames=frames)
