"""Matrices in blocks of 4 or 8 bits: rounded, recovered, saved, loaded and computed with."""

import gguf
import keras
import numpy as np
import pytest

from keras_transformer.layers import Decoder
from keras_transformer.layers.basic import Dense
from keras_transformer.layers.blocks import BLOCKS, from_blocks, in_blocks, to_blocks
from keras_transformer.layers.token_table import TokenTable
from tests.backends import cases


def numpy(x):
    return keras.ops.convert_to_numpy(keras.ops.stop_gradient(x))


def in_file(matrix, kind):
    """A matrix as a GGUF file of a type holds it."""
    kind = gguf.GGMLQuantizationType[kind]
    return gguf.dequantize(gguf.quantize(matrix, kind), kind)


@pytest.mark.once("numbers: no tensor")
@pytest.mark.parametrize(
    ("kind", "bits"), [("Q4_0", 4), ("Q4_1", 4), ("Q8_0", 8), ("Q4_0", 8), ("Q4_1", 8)]
)
def test_numbers_of_a_quantized_file_are_recovered(kind, bits, rng):
    matrix = in_file(rng.standard_normal((128, 256)).astype("float32"), kind)
    levels, scales = to_blocks(matrix, bits)
    assert (levels.dtype, levels.shape) == ("uint8", (128, 256))
    assert (scales.dtype, scales.shape) == ("float16", (8, 128, 2))
    assert levels.max() < 2**bits
    # The rounding of scale and center to float16; half a level would be a hundred times as much.
    np.testing.assert_allclose(from_blocks(levels, scales, bits), matrix, atol=3e-3)
    if kind == "Q4_0":
        np.testing.assert_array_equal(from_blocks(levels, scales, bits), matrix)


@pytest.mark.once("numbers: no tensor")
@pytest.mark.parametrize("bits", [4, 8])
def test_other_numbers_are_rounded_to_evenly_spaced_levels(bits, rng):
    matrix = rng.standard_normal((64, 128)).astype("float32")
    matrix[3, :32] = 0.25  # a block of equal numbers
    rounded = from_blocks(*to_blocks(matrix, bits), bits)
    blocks = matrix.reshape(64, 4, 32)
    unit = np.ptp(blocks, axis=-1, keepdims=True) / (2**bits - 1)
    assert (np.abs(rounded.reshape(blocks.shape) - blocks) <= 0.5 * unit + 4e-3).all()
    np.testing.assert_allclose(rounded[3, :32], 0.25, atol=1e-3)


def made(kind, mode, rng):
    """A layer in blocks, and one of floats with the same matrix."""
    with in_blocks(mode):
        layer, other = (
            (Dense(70, activation="relu") if kind == "dense" else TokenTable(70, 128))
            for _ in range(2)
        )
        layer.build((None, 128))
    other.build((None, 128))
    layer.set_matrix(rng.standard_normal(layer.matrix_shape))
    getattr(other, layer.matrix_name).assign(layer.float_matrix())
    if kind == "dense":
        bias = rng.standard_normal(70)
        layer.bias.assign(bias)
        other.bias.assign(bias)
    return layer, other


@pytest.mark.parametrize("mode", BLOCKS)
@pytest.mark.parametrize("rows", cases([1, 3, 40], 1))
def test_products_are_those_of_the_floats(mode, rows, rng):
    x = rng.standard_normal((rows, 128)).astype("float32")
    layer, other = made("dense", mode, rng)
    assert (layer.quantization_mode, layer.bits) == (mode, BLOCKS[mode])
    np.testing.assert_allclose(numpy(layer(x)), numpy(other(x)), atol=1e-4)
    ids = np.array([[0, 69], [65, 3]], "int32")
    np.testing.assert_allclose(numpy(layer.outputs(ids)), numpy(other.outputs(ids)), atol=1e-5)


@pytest.mark.parametrize("mode", BLOCKS)
def test_tables_have_eight_bits(mode, rng):
    layer, other = made("table", mode, rng)
    assert layer.bits == 8
    ids = np.array([[0, 69], [65, 3]], "int32")
    np.testing.assert_allclose(numpy(layer(ids)), numpy(other(ids)), atol=1e-5)
    x = rng.standard_normal((2, 3, 128)).astype("float32")
    expected = numpy(other(x, reverse=True))
    np.testing.assert_allclose(numpy(layer(x, reverse=True)), expected, atol=1e-4)


@pytest.mark.once("a product of PyTorch's")
@pytest.mark.parametrize("mode", BLOCKS)
def test_products_of_few_rows_are_near_without_gradients(mode, rng):
    torch = pytest.importorskip("torch")
    layer, other = made("dense", mode, rng)
    for rows in (1, 2, 33):
        x = rng.standard_normal((rows, 128)).astype("float32")
        with torch.no_grad():
            result = numpy(layer(x))
        np.testing.assert_allclose(result, numpy(other(x)), atol=0.2, rtol=0.01)


@pytest.mark.parametrize("inputs", cases([16, 96], 16))
def test_inputs_in_no_whole_blocks_stay_floats(inputs):
    with in_blocks("q4"):
        layer = Dense(8)
        layer.build((None, inputs))
    assert layer.quantization_mode is None and layer.kernel.shape == (inputs, 8)


@pytest.mark.parametrize("mode", cases([*BLOCKS], "q4"))
def test_a_layer_of_ones_own_model_is_saved_and_loaded(mode, saved_and_loaded, rng):
    x = keras.Input((None, 64))
    with in_blocks(mode):
        decoder = Decoder(num_layers=1, num_heads=2, d_ff=64, cross_attention=False)
        model = keras.Model(x, decoder(x)[0])
    for layer in decoder._flatten_layers():
        if getattr(layer, "bits", 0):
            layer.set_matrix(rng.standard_normal(layer.matrix_shape))
    batch = rng.standard_normal((2, 5, 64)).astype("float32")
    loaded = saved_and_loaded(model)
    np.testing.assert_array_equal(numpy(loaded(batch)), numpy(model(batch)))
    kinds = {weight.dtype for weight in loaded.weights if len(weight.shape) > 1}
    assert kinds == {"uint8", "float16"}
