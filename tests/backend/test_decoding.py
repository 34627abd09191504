"""Building blocks of a search against NumPy."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import best_tokens, compiled, forbid, gather, put, row_loop
from tests.backends import cases

numpy = ops.convert_to_numpy


@pytest.mark.parametrize("size", [50, 20_000])  # in one pass, and in two
def test_best_tokens(rng, size):
    logits = rng.standard_normal((3, 2, size)).astype("float32")
    values, tokens, log_z = map(numpy, best_tokens(ops.convert_to_tensor(logits), 4))
    expected = np.argsort(-logits, axis=-1)[..., :4]
    np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, -1))
    np.testing.assert_allclose(log_z[..., 0], np.log(np.exp(logits).sum(-1)), rtol=1e-5)


@pytest.mark.parametrize(
    "size,k",
    cases(
        [*itertools.product([63, 64, 200, 259, 5000, 10_000], [1, 2, 9])],
        *((63, 2), (200, 1), (259, 9), (5000, 2), (10_000, 9)),
    ),
)
def test_best_tokens_of_any_size_and_equal_logits(rng, size, k):
    """The first of equal logits are taken; PyTorch takes any."""
    logits = rng.integers(-20, 20, (7, size)).astype("float32") / 4
    values, tokens, log_z = map(numpy, best_tokens(ops.convert_to_tensor(logits), k))
    expected = np.argsort(-logits, axis=-1, kind="stable")[:, :k]
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, -1))
    np.testing.assert_array_equal(values, np.take_along_axis(logits, tokens, -1))
    assert all(len(set(row)) == k for row in tokens.tolist())
    if keras.backend.backend() != "torch":
        np.testing.assert_array_equal(tokens, expected)
    np.testing.assert_allclose(log_z[:, 0], np.log(np.exp(logits).sum(-1)), rtol=1e-5)


def test_forbid(rng):
    logits = rng.standard_normal((2, 3, 5)).astype("float32")
    ids = np.full((2, 3, 4), -1, "int32")
    ids[0, 1] = [2, 0, 2, -1]
    ids[1, 2] = [1, -1, -1, 3]
    expected = logits.copy()
    expected[0, 1, [2, 0]] = expected[1, 2, [1, 3]] = -9
    found = forbid(ops.convert_to_tensor(logits), ops.convert_to_tensor(ids), -9.0)
    np.testing.assert_array_equal(ops.convert_to_numpy(found), expected)


def test_put():
    x, value = ops.zeros((2, 3), dtype="int32"), ops.convert_to_tensor([4, 5])
    for place in (1, ops.convert_to_tensor(1)):
        assert numpy(put(x, value, place)).tolist() == [[0, 4, 0], [0, 5, 0]]
    assert not numpy(x).any()


def test_gather_repeats_axes_of_size_one(rng):
    x = rng.standard_normal((2, 5, 3)).astype("float32")
    indices = np.array([[[4], [0]], [[1], [1]]], "int32")
    found = numpy(gather(ops.convert_to_tensor(x), ops.convert_to_tensor(indices), 1))
    np.testing.assert_array_equal(found, np.take_along_axis(x, indices, axis=1))


def test_a_loop_ends_with_its_last_row_or_its_length():
    ends = ops.convert_to_tensor(np.array([2, 4, 99], "int32"))

    def turn(i, done_B, found, alive):
        running_B = ops.cast(ops.logical_not(done_B), "int32")
        return ops.greater_equal(i, alive["ends"]), {"turns": found["turns"] + running_B}, alive

    for length, expected in ((4, [2, 3, 3]), (1, [0, 0, 0])):
        first = ops.zeros(3, "bool"), {"turns": ops.zeros(3, "int32")}, {"ends": ends}
        results = row_loop(turn, length, *first)
        np.testing.assert_array_equal(numpy(results["turns"]), expected)


@pytest.mark.parametrize("rows", [1, 5, 64, 150])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_rows_that_end_leave_the_loop(rng, rows, is_compiled):
    """Each row adds up its numbers until its end, whatever becomes of the others."""
    ends_B, numbers_BL = rng.integers(0, 30, rows), rng.integers(0, 9, (rows, 30))
    seen = []

    def turn(i, done_B, found, alive):
        seen.append(done_B.shape[0])
        running_B = ops.cast(ops.logical_not(done_B), "int32")
        found = {"sum": found["sum"] + running_B * alive["numbers"][:, i]}
        cache = alive["cache"] + ops.reshape(alive["numbers"][:, i], (-1, 1, 1, 1))
        alive = {**alive, "cache": cache}
        return ops.logical_or(done_B, ops.greater_equal(i, alive["ends"])), found, alive

    def find(ends_B, numbers_BL):
        alive = {
            "ends": ends_B,
            "numbers": numbers_BL,
            "cache": ops.zeros((rows, 1, 1, 1), "int32"),
        }
        return row_loop(turn, 25, ops.less(ends_B, 1), {"sum": ops.zeros(rows, "int32")}, alive)

    if is_compiled:
        find = compiled(find, keras.Sequential())
    given = (ops.convert_to_tensor(x.astype("int32")) for x in (ends_B, numbers_BL))
    expected = [sum(own[1 : min(end, 24) + 1]) for end, own in zip(ends_B, numbers_BL, strict=True)]
    np.testing.assert_array_equal(numpy(find(*given)["sum"]), expected)
    if rows == 150 and seen[0] is not None:
        assert min(seen) < rows
