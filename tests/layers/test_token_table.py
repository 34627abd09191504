"""Rows and logits of a token table, whatever form its matrix has."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers.blocks import in_blocks
from keras_transformer.layers.token_table import TokenTable
from tests.backends import cases


def numpy(x):
    return ops.convert_to_numpy(ops.cast(ops.stop_gradient(x), "float32"))


def table_of(kind, rng):
    """A table of 5 tokens, and its matrix."""
    layer = TokenTable(5, 64, reverse_dtype="float32")
    with in_blocks(kind if kind == "q8" else None):
        layer.build()
    matrix = rng.standard_normal((5, 64)).astype("float32")
    if kind == "q8":
        layer.set_matrix(matrix)
        return layer, layer.float_matrix()
    layer.embeddings.assign(matrix)
    if kind == "int8":
        layer.quantize("int8")
        return layer, layer.whole_matrix()
    if kind == "lora":
        layer.enable_lora(2)
        layer.lora_embeddings_b.assign(rng.standard_normal((2, 64)))
        assert np.abs(numpy(layer.embeddings) - matrix).max() > 0.01
    return layer, numpy(layer.embeddings)


KINDS = ["floats", "lora", "int8", "q8"]


@pytest.mark.parametrize("kind", cases(KINDS, "floats", "int8"))
def test_rows_and_logits_are_products_with_one_matrix(kind, rng):
    layer, matrix = table_of(kind, rng)
    ids = np.array([[4, 0, 4]], "int32")
    np.testing.assert_allclose(
        numpy(layer.rows(ops.convert_to_tensor(ids), "float32")), matrix[ids], atol=1e-5
    )
    hidden = rng.standard_normal((1, 3, 64)).astype("float32")
    # In int8, the hidden states are rounded, too.
    tolerance = 0.3 if kind == "int8" else 1e-4
    logits = layer.logits(ops.convert_to_tensor(hidden), "float32")
    np.testing.assert_allclose(numpy(logits), hidden @ matrix.T, atol=tolerance)


@pytest.mark.parametrize("kind", cases(KINDS, "floats"))
def test_rows_in_another_dtype(kind, rng):
    layer, matrix = table_of(kind, rng)
    rows = layer.rows(ops.convert_to_tensor([[1, 2]], dtype="int32"), "bfloat16")
    assert keras.backend.standardize_dtype(rows.dtype) == "bfloat16"
    np.testing.assert_allclose(numpy(rows), matrix[[[1, 2]]], atol=0.05)
