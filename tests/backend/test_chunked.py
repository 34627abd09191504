"""Attention in chunks against the whole matrix of weights: values, gradients, what is visited."""

import importlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import Pattern, attention, attention_weights, chunked
from tests.backends import cases

WIDTH = 8
PATTERNS = {
    "all": Pattern(),
    "causal": Pattern(causal=True),
    "window": Pattern(window=70),
    "causal-window": Pattern(causal=True, window=30),
    "window-global": Pattern(window=5, global_tokens=3),
    "causal-window-global": Pattern(causal=True, window=30, global_tokens=70),
}

CAPPED = [("causal", 1.5), ("causal-window-global", 0.4)]

attention_module = importlib.import_module("keras_transformer.backend.dot_product_attention")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK", 64)


def arrays(rng, length, places):
    shapes = [(2, 2, n, WIDTH) for n in (length, places, places, length)]
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def value_and_gradients(function, query, key, value, upstream):
    """The output, and the gradients of its product with `upstream`."""
    if keras.backend.backend() == "torch":
        import torch

        inputs = [torch.tensor(x, requires_grad=True) for x in (query, key, value)]
        output = function(*inputs)
        (output * torch.tensor(upstream)).sum().backward()
        gradients = [x.grad for x in inputs]
    elif keras.backend.backend() == "jax":
        import jax

        output, pull = jax.vjp(jax.jit(function), query, key, value)
        gradients = pull(upstream)
    else:
        import tensorflow as tf

        inputs = [tf.constant(x) for x in (query, key, value)]

        @tf.function(autograph=False)
        def run(*inputs):
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                output = function(*inputs)
            return output, tape.gradient(output, inputs, upstream)

        output, gradients = run(*inputs)
    return [ops.convert_to_numpy(x) for x in (output, *gradients)]


@pytest.mark.parametrize(
    "name,soft_cap",
    cases(
        [*((name, None) for name in PATTERNS), *CAPPED],
        *(("all", None), ("window-global", None), ("causal-window-global", 0.4)),
    ),
)
def test_equals_the_whole_matrix(name, soft_cap, rng):
    pattern = PATTERNS[name]
    length, places = (150, 200) if name == "all" else (200, 200)
    inputs = arrays(rng, length, places)
    # Of one row all, of the other the first keys only; a query that sees nothing does not count.
    mask = (np.arange(places) < np.array([[places], [places - 40]]))[:, None, None]
    by_place = pattern.mask(length, places)
    by_place = True if by_place is None else ops.convert_to_numpy(by_place)
    allowed = np.broadcast_to(mask & by_place, (2, 1, length, places))
    inputs[3] = inputs[3] * allowed.any(-1)[..., None]

    def ours(*three):
        return chunked.chunked_attention(*three, ops.convert_to_tensor(mask), pattern, soft_cap)

    def whole(query, key, value):
        allow = ops.convert_to_tensor(allowed)
        weights = attention_weights(query, key, allow, soft_cap=soft_cap)
        return ops.matmul(weights, value)

    found, expected = value_and_gradients(ours, *inputs), value_and_gradients(whole, *inputs)
    seen = allowed.any(-1)[..., None]
    np.testing.assert_allclose(found[0] * seen, expected[0] * seen, atol=1e-5)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_mask_of_every_pair_and_rows_that_see_nothing(rng):
    query, key, value, _ = arrays(rng, 100, 100)
    mask = rng.random((2, 1, 100, 100)) < 0.3
    mask[:, :, 7] = False
    found = chunked.chunked_attention(query, key, value, ops.convert_to_tensor(mask), Pattern())
    expected = np.matmul(attention_weights(query, key, ops.convert_to_tensor(mask)), value)
    found = ops.convert_to_numpy(found)
    assert (found[:, :, 7] == 0).all()
    rest = np.arange(100) != 7
    np.testing.assert_allclose(found[:, :, rest], np.asarray(expected)[:, :, rest], atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "name,soft_cap",
    [("causal", None), ("causal-window", None), ("window-global", None), ("causal", 2.0)],
)
def test_attention_takes_long_inputs_in_chunks(name, soft_cap, rng, monkeypatch):
    pattern, used = PATTERNS[name], []
    inputs = [ops.convert_to_tensor(x) for x in arrays(rng, 600, 600)[:3]]

    def recorded(*arguments):
        used.append(arguments)
        return chunked.chunked_attention(*arguments)

    monkeypatch.setattr(attention_module, "chunked_attention", recorded)
    monkeypatch.setattr(attention_module, "LONG", float("inf"))
    monkeypatch.setattr(attention_module, "MANY_WINDOWS", float("inf"))
    options = dict(pattern=pattern, soft_cap=soft_cap)
    whole = ops.convert_to_numpy(attention(*inputs, **options))
    assert not used
    monkeypatch.undo()
    monkeypatch.setattr(attention_module, "chunked_attention", recorded)
    monkeypatch.setattr(attention_module, "LONG", 600 * 600)
    found = ops.convert_to_numpy(attention(*inputs, **options))
    # PyTorch's own kernel is frugal by itself where no window is, and no cap.
    by_own = keras.backend.backend() == "torch" and pattern.window is None and soft_cap is None
    assert bool(used) != by_own
    np.testing.assert_allclose(found, whole, atol=1e-5)


def test_what_a_window_leaves_out_is_not_visited(rng):
    """NaN there changes nothing: it would, were it multiplied by a weight of zero."""
    query, key, value, _ = arrays(rng, 640, 640)
    value[:, :, :300] = np.nan
    inputs = [ops.convert_to_tensor(x) for x in (query, key, value)]
    out = chunked.chunked_attention(*inputs, None, Pattern(causal=True, window=64))
    out = ops.convert_to_numpy(out)
    assert np.isnan(out[:, :, :300]).all() and np.isfinite(out[:, :, 300 + 2 * 64 :]).all()
