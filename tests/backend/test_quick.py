"""The quick operations mean what those of `keras.ops` mean."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import BACKEND, quick

CASES = {
    "arange": lambda k, x: k.arange(5, dtype="int32"),
    "argmax": lambda k, x: k.argmax(x, axis=-1),
    "cast": lambda k, x: k.cast(x, "int32"),
    "cast a number": lambda k, x: k.cast(3, "float32"),
    "concatenate": lambda k, x: k.concatenate([x, 2 * x], axis=1),
    "cumsum": lambda k, x: k.cumsum(x, 1),
    "expand_dims": lambda k, x: k.expand_dims(x, 1),
    "expand_dims of two": lambda k, x: k.expand_dims(x, (0, 2)),
    "full": lambda k, x: k.full((2, 3), 7, dtype="int32"),
    "logsumexp": lambda k, x: k.logsumexp(x, axis=-1, keepdims=True),
    "matmul": lambda k, x: k.matmul(x, k.transpose(x, (0, 2, 1))),
    "maximum": lambda k, x: k.maximum(x, 0),
    "maximum of tensors": lambda k, x: k.maximum(x, -x),
    "minimum": lambda k, x: k.minimum(x, 0),
    "minimum of tensors": lambda k, x: k.minimum(x, -x),
    "not_equal": lambda k, x: k.not_equal(k.cast(x, "int32"), 0),
    "ones_like": lambda k, x: k.ones_like(x, dtype="int32"),
    "repeat": lambda k, x: k.repeat(x, 3, axis=1),
    "reshape": lambda k, x: k.reshape(x, (-1, 4)),
    "sigmoid": lambda k, x: k.sigmoid(k.cast(x, "float32")),
    "softmax": lambda k, x: k.softmax(x, axis=-1),
    "split": lambda k, x: k.split(x, 2, axis=-1)[1],
    "split at places": lambda k, x: k.split(x, [1, 3], axis=-1)[1],
    "sum": lambda k, x: k.sum(k.cast(x, "int32"), axis=1),
    "take": lambda k, x: k.take(x, k.cast(k.ones_like(x[0]), "int32"), axis=1),
    "top_k": lambda k, x: k.top_k(x, 2)[0],
    "transpose": lambda k, x: k.transpose(x, (2, 0, 1)),
    "where": lambda k, x: k.where(x > 0, x, -1.0),
    "zeros": lambda k, x: k.zeros((2, 3), dtype="bool"),
    "zeros_like": lambda k, x: k.zeros_like(x),
}


@pytest.mark.parametrize("name", CASES)
def test_is_the_one_of_keras(rng, name):
    x = ops.convert_to_tensor(rng.standard_normal((2, 3, 4)).astype("float32") * 3)
    ours, theirs = (ops.convert_to_numpy(CASES[name](room, x)) for room in (quick, ops))
    assert ours.shape == theirs.shape
    assert ours.dtype.kind == theirs.dtype.kind
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_every_one_is_tested():
    assert {*quick.__all__} - {name.split()[0] for name in CASES} == {"shape"}


@pytest.mark.skipif(BACKEND != "tensorflow", reason="sizes are known in a graph")
def test_sizes_in_a_graph():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec((None, 3, None))], autograph=False)
    def function(x):
        assert quick.shape(x)[1] == 3
        return quick.shape(x)[0], quick.shape(x)[2]

    sizes = function(tf.ones((2, 3, 5)))
    assert [int(size) for size in sizes] == [2, 5]
    kinds = [
        operation.type for operation in function.get_concrete_function().graph.get_operations()
    ]
    assert "StridedSlice" not in kinds


def test_places_of_the_top_are_int32(rng):
    values, places = quick.top_k(ops.convert_to_tensor(rng.standard_normal((3, 5))), 2)
    assert ops.convert_to_numpy(places).dtype == "int32"
    assert tuple(quick.shape(values)) == (3, 2)
