"""Frames from frames, beside a plain loop."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import decode_frames

LAST = np.array([2, 0, 9, 4])  # the step after which each row stops; the third never does


def expected(first, length):
    """What the loop in the text says: x' = x / 2 + place of the frame before."""
    values = np.zeros((len(first), length, first.shape[1]), "float32")
    lengths = np.minimum(LAST + 1, length)
    for row, steps in enumerate(lengths):
        x = first[row]
        for i in range(steps):
            values[row, i] = x
            x = x / 2 + i
    return values, lengths


@pytest.mark.parametrize("length", [6])
def test_each_row_stops_alone(length, rng):
    first = rng.standard_normal((4, 3)).astype("float32")

    def step(frames_BR, state, index):
        stop_B = ops.cast(state["last_B"] <= index + 1, "float32") - 0.5
        return frames_BR / 2 + ops.cast(index, "float32"), stop_B, state

    last_B = ops.convert_to_tensor(LAST.astype("int32"))
    stop_B = ops.cast(last_B <= 0, "float32") - 0.5
    state = {"last_B": last_B}
    found = decode_frames(step, ops.convert_to_tensor(first), stop_B, state, length)
    for one, other in zip(found, expected(first, length), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(one), other, atol=1e-6)
