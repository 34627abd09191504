"""Adam's update by a backend's own kernel against Algorithm 1 of Kingma and Ba 2015."""

import keras
import numpy as np
import pytest

from keras_transformer.backend import BACKEND, adam_update, has_adam_update


@pytest.mark.skipif(BACKEND == "jax", reason="JAX compiles Keras's own update")
def test_three_updates(rng):
    assert has_adam_update()
    rate, beta_1, beta_2, epsilon = 0.1, 0.9, 0.98, 1e-9
    weight = rng.standard_normal((3, 4)).astype("float32")
    values = [keras.Variable(x) for x in (weight, 0 * weight, 0 * weight)]
    momentum = velocity = np.zeros_like(weight)
    for step in range(1, 4):
        gradient = rng.standard_normal((3, 4)).astype("float32")
        tensor = keras.ops.convert_to_tensor(gradient)
        lists = [[x if BACKEND == "tensorflow" else x.value] for x in values[:1]]
        lists += [[tensor], [values[1].value], [values[2].value]]
        count = keras.ops.convert_to_tensor(step)
        if BACKEND == "torch":
            lists = [[x.detach() for x in one] for one in lists]
        adam_update(*lists, rate, count, beta_1, beta_2, epsilon)
        momentum = beta_1 * momentum + (1 - beta_1) * gradient
        velocity = beta_2 * velocity + (1 - beta_2) * gradient**2
        corrected = momentum / (1 - beta_1**step), velocity / (1 - beta_2**step)
        weight = weight - rate * corrected[0] / (np.sqrt(corrected[1]) + epsilon)
        np.testing.assert_allclose(keras.ops.convert_to_numpy(values[0]), weight, atol=1e-5)
