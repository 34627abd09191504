"""A linear recurrence against a loop in NumPy, and its gradients."""

import keras
import numpy as np
from keras import ops

from keras_transformer.backend import compiled, linear_recurrence

numpy = ops.convert_to_numpy


def loop(decay, added):
    states, state = [], np.zeros_like(added[:, 0])
    for t in range(added.shape[1]):
        state = decay[:, t] * state + added[:, t]
        states.append(state)
    return np.stack(states, axis=1)


def test_equals_a_loop(rng):
    model = keras.Sequential()  # without variables
    run = compiled(linear_recurrence, model, varying=(0, 1))
    for length in (1, 2, 7):
        decay, added = (rng.uniform(-1, 1, (2, length, 3)).astype("float32") for _ in range(2))
        states = numpy(run(*map(ops.convert_to_tensor, (decay, added))))
        np.testing.assert_allclose(states, loop(decay, added), atol=1e-6)
