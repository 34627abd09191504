"""Building blocks of a search against NumPy."""

import numpy as np
from keras import ops

from keras_transformer.backend import best_tokens, gather, row_loop

numpy = ops.convert_to_numpy


def test_best_tokens(rng):
    logits = rng.standard_normal((3, 2, 50)).astype("float32")
    values, tokens, log_z = map(numpy, best_tokens(ops.convert_to_tensor(logits), 4))
    expected = np.argsort(-logits, axis=-1)[..., :4]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, -1))
    np.testing.assert_allclose(log_z[..., 0], np.log(np.exp(logits).sum(-1)), rtol=1e-5)


def test_gather_repeats_axes_of_size_one(rng):
    x = rng.standard_normal((2, 5, 3)).astype("float32")
    indices = np.array([[[4], [0]], [[1], [1]]], "int32")
    found = numpy(gather(ops.convert_to_tensor(x), ops.convert_to_tensor(indices), 1))
    np.testing.assert_array_equal(found, np.take_along_axis(x, indices, axis=1))


def test_a_loop_ends_with_its_last_row_or_its_length():
    ends = ops.convert_to_tensor(np.array([2, 4, 99], "int32"))

    def body(i, done_B, found, alive):
        running_B = ops.cast(ops.logical_not(done_B), "int32")
        return ops.greater_equal(i, alive["ends"]), {"turns": found["turns"] + running_B}, alive

    for length, expected in ((4, [2, 3, 3]), (1, [0, 0, 0])):
        first = ops.zeros(3, "bool"), {"turns": ops.zeros(3, "int32")}, {"ends": ends}
        found = row_loop(body, length, *first)
        np.testing.assert_array_equal(numpy(found["turns"]), expected)
