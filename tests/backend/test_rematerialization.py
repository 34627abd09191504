"""Results that are computed again: the same values, gradients and random numbers."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import BACKEND, dropout, rematerialized
from keras_transformer.layers import Encoder
from keras_transformer.models import enable_remat


class Noisy(keras.layers.Layer):
    """Dropout of x w, twice, where a mask allows; with or without rematerialization."""

    def __init__(self, remat):
        super().__init__()
        self.generator = keras.random.SeedGenerator(3)
        self.w = self.add_weight(shape=(4,), initializer="ones")
        self.remat = remat

    def compute(self, arguments):
        x, _, allowed = arguments
        for _ in range(2):
            x = dropout(x * self.w, 0.5, self.generator)
        return ops.where(allowed, x, 0.0)

    def call(self, x):
        arguments = x, None, ops.ones_like(x, "bool")
        if self.remat:
            return rematerialized(self.compute, arguments, [self.generator.state])
        return self.compute(arguments)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_random_numbers_are_drawn_once(run_eagerly):
    found = []
    for remat in (False, True):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), Noisy(remat), Noisy(remat)])
        model.compile("sgd", "mse", run_eagerly=run_eagerly)
        x = np.linspace(1, 2, 32, dtype="float32").reshape(8, 4)
        losses = [model.train_on_batch(x, np.zeros((8, 4))) for _ in range(2)]
        states = [ops.convert_to_numpy(layer.generator.state) for layer in model.layers]
        weights = [ops.convert_to_numpy(layer.w) for layer in model.layers]
        found.append([losses, *states, *weights])
    if BACKEND != "torch":
        assert found[0][1][1] == 4  # two draws in each of two steps
    for before, again in zip(*found, strict=True):
        np.testing.assert_allclose(again, before, rtol=1e-6)


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch's random state is not Keras's")
def test_an_error_leaves_the_states():
    generator = keras.random.SeedGenerator(3)

    def fails(x):
        generator.next()
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        rematerialized(fails, ops.ones((2,)), [generator.state])
    np.testing.assert_array_equal(ops.convert_to_numpy(generator.state), [3, 0])


@pytest.mark.skipif(BACKEND != "torch", reason="other backends trace every step")
def test_recorded_and_transformed_calls_of_pytorch():
    import torch

    encoder = Encoder(2, 2, 12, dropout=0.0)
    x = torch.randn(2, 4, 8)
    encoder(x)
    expected = torch.func.grad(lambda x: encoder(x, training=True).square().sum())(x)
    enable_remat(encoder)
    found = torch.func.grad(lambda x: encoder(x, training=True).square().sum())(x)
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-5)
    compiled = torch.compile(lambda x: encoder(x, training=True), backend="eager")
    x.requires_grad_()
    compiled(x).square().sum().backward()
    np.testing.assert_allclose(x.grad, expected.detach(), atol=1e-5)
