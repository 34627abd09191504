"""PyTorch's products against autograd of the plain formulas, by either library."""

import keras
import numpy as np
import pytest
import torch

from keras_transformer.backend import (
    has_int8_linear,
    linear,
    portable,
    precision,
    private,
    usable_precision,
)
from keras_transformer.backend.torch import matrix_products
from keras_transformer.system import processor

LIBRARIES = {"plain": (False, False), "onednn": (True, True), "onednn-forward": (True, False)}


@pytest.fixture(params=LIBRARIES.values(), ids=LIBRARIES, autouse=True)
def library(request, monkeypatch):
    for name, value in zip(("_BY_ONEDNN", "_GRADIENTS_BY_ONEDNN"), request.param, strict=True):
        monkeypatch.setattr(matrix_products, name, value)


def tensors(rng, *shapes):
    made = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    return [torch.tensor(x, device="cpu", requires_grad=True) for x in made]


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", [None, keras.activations.relu])
def test_linear_and_its_gradients(rng, activation):
    x, kernel, bias = tensors(rng, (2, 7, 5), (5, 6), (6,))

    def results(y):
        return [y, *torch.autograd.grad((y * y).sum(), (x, kernel, bias))]

    plain = x @ kernel + bias
    plain = plain if activation is None else torch.relu(plain)
    same(results(linear(x, kernel, bias, activation)), results(plain))


@pytest.mark.parametrize("rows", [1, 4, 9])
@pytest.mark.parametrize("width", [6, 300])
@pytest.mark.parametrize("transposed", [False, True])
def test_linear_of_a_variable_that_changes(rng, rows, width, transposed):
    kernel = keras.Variable(rng.standard_normal((300, width)), dtype="float32")
    bias = keras.Variable(rng.standard_normal(width), dtype="float32")
    (x,) = tensors(rng, (rows, 300))
    shown = keras.Variable(kernel.numpy().T, dtype="float32") if transposed else kernel
    with torch.no_grad():
        for _ in range(2):
            found = linear(x, shown, bias, transposed=transposed)
            same([found], [x @ kernel.value + bias.value])
            kernel.assign(kernel.value + 1.0)
            shown.assign(kernel.value.t() if transposed else kernel.value)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("width", "filled"), [(10, 48), (100, 144), (64, 64), (96, 96)])
def test_a_plain_product_in_whole_blocks(rng, width, filled, transposed):
    x, kernel, bias = tensors(rng, (3, 5), (5, width), (width,))
    shown = kernel.t() if transposed else kernel
    with portable():
        plain = linear(x, shown, bias, transposed=transposed)
        with matrix_products.whole_blocks():
            same([linear(x, shown, bias, transposed=transposed)], [plain])
            assert linear(x, shown, transposed=transposed).stride(0) == filled
        assert linear(x, shown, transposed=transposed).stride(0) == width


@pytest.fixture
def no_units(monkeypatch):
    """A processor on which oneDNN has no products in bfloat16."""

    def refuse(*_):
        raise RuntimeError("could not create a primitive descriptor for the matmul primitive.")

    monkeypatch.setattr(private, "LINEAR_POINTWISE", refuse)
    monkeypatch.setattr(matrix_products, "_BY_ONEDNN", False)
    matrix_products.computes_bfloat16.cache_clear()
    precision._computes_in.cache_clear()
    yield
    matrix_products.computes_bfloat16.cache_clear()
    precision._computes_in.cache_clear()


def test_bfloat16_without_units_is_computed_without_onednn(rng, no_units):
    x, kernel, bias = tensors(rng, (7, 5), (5, 6), (6,))
    y = linear(x.bfloat16(), kernel, bias, keras.activations.relu)
    found = [y.float(), *torch.autograd.grad(y.sum(), (x, kernel, bias))]
    plain = torch.relu(x @ kernel + bias)
    expected = [plain, *torch.autograd.grad(plain.sum(), (x, kernel, bias))]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=0.1, atol=0.2)


@pytest.mark.parametrize("name", ["bfloat16", "mixed_bfloat16"])
def test_a_precision_that_onednn_lacks_is_float32_with_a_warning(no_units, name, monkeypatch):
    """Even for a user who insists."""
    monkeypatch.setenv(precision.VARIABLE, "strict")
    with pytest.warns(match=f"precision is float32 in place of {name}: this machine does not"):
        assert usable_precision(name) == "float32"
    assert usable_precision("float16") == "float16"


@pytest.mark.parametrize(
    ("features", "expected"), [("avx2 avx512f", False), ("avx2 avx512_vnni", True), ("", False)]
)
def test_int8_without_units_saturates_and_is_not_used(monkeypatch, features, expected):
    monkeypatch.setenv(processor.VARIABLE, features)
    matrix_products.multiplies_int8.cache_clear()
    with torch.no_grad():
        assert has_int8_linear(torch.ones(2, 3, device="cpu")) == expected
    matrix_products.multiplies_int8.cache_clear()
