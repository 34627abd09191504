"""Eight bits and the four of their remainder: packed, used, saved and loaded."""

import hypothesis
import keras
import numpy as np
import pytest
from hypothesis import strategies as st

from keras_transformer.layers.basic import Dense
from keras_transformer.layers.remainders import pack, unpack
from keras_transformer.layers.token_table import TokenTable
from tests.backends import cases


def numpy(x):
    return keras.ops.convert_to_numpy(keras.ops.stop_gradient(x))


@pytest.mark.once("numbers: no tensor")
@hypothesis.given(st.lists(st.floats(-0.5, 0.5), max_size=9))
def test_packed_numbers_are_near_in_half_the_bytes(numbers):
    numbers = np.array(numbers, "float32")
    packed = pack(numbers)
    assert packed.dtype == "uint8" and packed.size == (numbers.size + 1) // 2
    found = unpack(packed, numbers.shape)
    assert np.abs(found - numbers).max(initial=0) <= 1 / 28 + 1e-6
    np.testing.assert_array_equal(pack(found), packed)


@pytest.mark.once("numbers: no tensor")
def test_packed_by_hand():
    np.testing.assert_array_equal(pack(np.array([0.5, -0.5, 1 / 14])), [0x97, 0x01])
    np.testing.assert_allclose(unpack(np.array([0x97], "uint8"), (1, 2)), [[0.5, -0.5]])


def layer_of(kind):
    if kind == "dense":
        layer = Dense(5)
        layer.build((None, 3))
        return layer, layer.kernel
    layer = TokenTable(3, 3)  # a square, in which rows and columns could be mixed up
    layer.build()
    return layer, layer.embeddings


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("kind", cases(["dense", "table"], "table"))
def test_the_remainder_makes_the_error_a_fifteenth(kind, rng):
    layer, matrix = layer_of(kind)
    whole = rng.standard_normal(tuple(matrix.shape)).astype("float32")
    matrix.assign(whole)
    np.testing.assert_array_equal(layer.whole_matrix(), whole)
    layer.quantize("int8", remainder=True)
    unit = np.abs(whole).max(0 if kind == "dense" else 1, keepdims=True) / 127
    found = layer.whole_matrix()
    assert (np.abs(found - whole) <= unit / 28 + 1e-6).all()
    layer.remainder.assign(np.zeros(layer.remainder.shape))
    assert np.abs(layer.whole_matrix() - whole).max() > 3 * np.abs(found - whole).max()


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("kind", cases(["dense", "table"], "dense"))
def test_keras_computes_with_the_eight_bits_alone(kind, rng):
    layer, matrix = layer_of(kind)
    plain, its_matrix = layer_of(kind)
    matrix.assign(rng.standard_normal(tuple(matrix.shape)))
    its_matrix.assign(matrix)
    layer.quantize("int8", remainder=True)
    plain.quantize("int8")
    assert plain.remainder is None and len(layer.weights) == len(plain.weights) + 1
    x = np.array([[0, 2, 1]], "int32") if kind == "table" else np.ones((1, 3), "float32")
    np.testing.assert_array_equal(numpy(layer(x)), numpy(plain(x)))
    # With LoRA or in another mode there is none.
    assert "remainder" not in plain.variable_serialization_spec["int8"]
    assert layer.variable_serialization_spec["int8"][-1] == "remainder"
