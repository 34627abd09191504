"""What depends on the backend: cache writes, compilation, random state."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer
from keras_transformer.ops import (
    BACKEND,
    COMPILES_EACH_SHAPE,
    attention,
    compiled,
    dropout,
    layer_norm,
    linear,
    projected_cross_entropy,
    random_state,
    reuse_memory,
    set_random_state,
    write_cache,
)


def numpy(x):
    return ops.convert_to_numpy(x)


def without_gradients():
    if BACKEND == "torch":
        import torch

        return torch.no_grad()
    return contextlib.nullcontext()


@pytest.mark.parametrize("length,index", [(1, 0), (1, 4), (3, 1)])
@pytest.mark.parametrize("context", [contextlib.nullcontext, without_gradients])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_write_cache(rng, length, index, context, as_tensor):
    cache, update = rng.standard_normal((2, 3, 5, 4)), rng.standard_normal((2, 3, length, 4))
    expected = cache.copy()
    expected[:, :, index : index + length] = update
    place = ops.convert_to_tensor(index, dtype="int32") if as_tensor else index
    with context():
        actual = write_cache(ops.convert_to_tensor(cache), ops.convert_to_tensor(update), place)
    written = index + length  # what lies behind may be dropped
    np.testing.assert_allclose(numpy(actual)[:, :, :written], expected[:, :, :written], rtol=1e-6)


@pytest.fixture
def dense():
    layer = keras.layers.Dense(3)
    layer.build((None, 2))
    return layer


def test_compiled_gives_the_same_and_sees_new_weights(dense, rng):
    traces = []

    def function(x, extra):
        traces.append(1)
        return {"y": dense(x) + extra["one"], "twice": [2 * extra["one"]]}

    x = ops.convert_to_tensor(rng.standard_normal((4, 2)).astype("float32"))
    extra = {"one": ops.convert_to_tensor(np.ones((4, 3), "float32"))}
    run = compiled(function, dense)
    for _ in range(3):
        dense.set_weights([rng.standard_normal((2, 3)), rng.standard_normal(3)])
        result = run(x, extra)
        kernel, bias = dense.get_weights()
        np.testing.assert_allclose(numpy(result["y"]), numpy(x) @ kernel + bias + 1, atol=1e-5)
        assert numpy(result["twice"][0]).tolist() == [[2.0] * 3] * 4
    assert len(traces) == (3 if BACKEND == "torch" else 1)


def test_compiled_takes_arrays(dense, rng):
    x = rng.standard_normal((4, 2)).astype("float32")
    np.testing.assert_allclose(numpy(compiled(dense, dense)(x)), numpy(dense(x)), atol=1e-6)


def test_compiled_takes_other_shapes(dense, rng):
    run = compiled(dense, dense)
    for rows in (2, 5, 3):
        x = ops.convert_to_tensor(rng.standard_normal((rows, 2)).astype("float32"))
        np.testing.assert_allclose(numpy(run(x)), numpy(dense(x)), atol=1e-6)


def test_compiled_leaves_the_layers_state_alone(dense):
    """On JAX, values of a trace must not leak into the variables."""
    dropout = keras.layers.Dropout(0.5, seed=0)
    model = keras.Sequential([keras.Input((2,)), dense, dropout])
    before = [numpy(variable) for variable in model.trainable_variables]
    compiled(lambda x: model(x, training=True), model)(ops.ones((4, 2)))
    for old, variable in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(numpy(variable), old)
    assert numpy(model(ops.ones((4, 2)))).shape == (4, 3)


def test_compiled_needs_no_gradients(dense):
    result = compiled(dense, dense)(ops.ones((4, 2)))
    assert not getattr(result, "requires_grad", False)


def test_random_state_brings_back_the_same_dropout():
    state = random_state()
    dropout = keras.layers.Dropout(0.5, seed=0)
    generator = dropout.seed_generator.state
    start = numpy(generator)
    first = numpy(dropout(ops.ones((50,)), training=True))
    second = numpy(dropout(ops.ones((50,)), training=True))
    assert (first != second).any()
    set_random_state(state)
    generator.assign(start)
    np.testing.assert_array_equal(numpy(dropout(ops.ones((50,)), training=True)), first)


def test_only_torch_has_a_random_state_of_its_own():
    assert bool(random_state()) == (BACKEND == "torch")
    set_random_state({})  # a checkpoint from another backend


def test_the_backend_is_that_of_keras():
    assert keras.backend.backend() == BACKEND
    assert (BACKEND == "jax") == COMPILES_EACH_SHAPE


def test_a_backend_that_keras_has_and_we_do_not():
    root = Path(keras_transformer.__file__).parents[1]
    environment = os.environ | {"KERAS_BACKEND": "numpy", "PYTHONPATH": str(root)}
    result = subprocess.run(
        [sys.executable, "-c", "import keras, keras_transformer.ops"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "KERAS_BACKEND must be 'tensorflow', 'jax' or 'torch'" in result.stderr
    assert "got 'numpy'" in result.stderr


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_projected_cross_entropy(rng, dtype, tolerance, label_smoothing):
    hidden, table = rng.standard_normal((3, 5, 8)), rng.standard_normal((11, 8))
    labels = rng.integers(0, 11, (3, 5))
    labels[1, 2:] = 0
    loss, likelihood = projected_cross_entropy(
        ops.cast(hidden, dtype), ops.cast(table, dtype), ops.cast(labels, "int32"),
        label_smoothing, 0,
    )  # fmt: skip
    log_probabilities = np.log(softmax(hidden @ table.T))
    expected = -np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    real = labels != 0
    np.testing.assert_allclose(numpy(likelihood)[real], expected[real], atol=tolerance)
    expected = (1 - label_smoothing) * expected - label_smoothing * log_probabilities.mean(-1)
    np.testing.assert_allclose(numpy(loss)[real], expected[real], atol=tolerance)
    assert np.isfinite(numpy(loss)).all()


def test_projected_cross_entropy_of_padding_alone():
    loss, _ = projected_cross_entropy(
        ops.ones((2, 3, 4)), ops.ones((5, 4)), ops.zeros((2, 3), dtype="int32"), 0.1, 0
    )
    assert np.isfinite(numpy(loss)).all()


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout(rate):
    x = ops.ones((400, 101))
    seed = keras.random.SeedGenerator(3)
    dropped = numpy(dropout(x, rate, seed))
    kept = dropped != 0
    np.testing.assert_allclose(1 - kept.mean(), rate, atol=0.01)
    np.testing.assert_allclose(dropped[kept], 1 / (1 - rate), rtol=5e-3)
    assert len(np.unique(dropped)) == 2
    other = numpy(dropout(x, rate, seed, residual=3 * x))
    np.testing.assert_allclose(sorted(np.unique(other)), [3, 3 + 1 / (1 - rate)], rtol=5e-3)
    assert ((other > 3) != kept).any()  # drawn anew


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
@pytest.mark.parametrize("context", [contextlib.nullcontext, without_gradients])
def test_attention_is_weights_times_values(rng, dtype, tolerance, context):
    query, key, value = (rng.standard_normal((2, 3, n, 4)) for n in (5, 6, 6))
    masks = rng.random((2, 1, 5, 6)) < 0.6
    masks[1, :, 2] = False  # a query that may see nothing
    bias = rng.standard_normal((1, 3, 5, 6))
    inputs = [ops.cast(x, dtype) for x in (query, key, value)]
    for mask in (None, masks):
        for b in (None, bias):
            with context():
                ours = attention(
                    *inputs,
                    None if mask is None else ops.convert_to_tensor(mask),
                    None if b is None else ops.cast(b, "float32"),
                )
            logits = query @ key.swapaxes(2, 3) / 2 + (0 if b is None else b)
            if mask is not None:
                logits = np.where(mask, logits, -1e9)
            expected = softmax(logits) @ value
            np.testing.assert_allclose(numpy(ops.cast(ours, "float32")), expected, atol=tolerance)


@pytest.mark.parametrize("width", [3, 8, 32])
def test_attention_with_a_bias_in_compiled_code(rng, width):
    query, key, value = (rng.standard_normal((2, 2, n, width)) for n in (4, 6, 6))
    bias = rng.standard_normal((2, 1, 4, 6))
    inputs = [ops.cast(x, "float32") for x in (query, key, value, bias)]
    run = compiled(lambda q, k, v, b: attention(2 * q, k, v, bias=b), keras.layers.Identity())
    logits = 2 * query @ key.swapaxes(2, 3) / width**0.5 + bias
    np.testing.assert_allclose(numpy(run(*inputs)), softmax(logits) @ value, atol=1e-4)


def test_linear(rng):
    x, kernel, bias = (rng.standard_normal(s).astype("float32") for s in ((2, 3, 4), (4, 5), (5,)))
    plain = x @ kernel + bias
    x = ops.convert_to_tensor(x)
    np.testing.assert_allclose(numpy(linear(x, kernel, bias)), plain, atol=1e-5)
    np.testing.assert_allclose(numpy(linear(x, kernel, None)), plain - bias, atol=1e-5)
    for name, function in (("relu", lambda x: np.maximum(x, 0)), ("tanh", np.tanh)):
        ours = linear(x, kernel, bias, keras.activations.get(name))
        np.testing.assert_allclose(numpy(ours), function(plain), atol=1e-5)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 1e-5), ("bfloat16", 0.05)])
def test_layer_norm(rng, dtype, tolerance):
    x, gamma, beta = (rng.standard_normal(shape) for shape in ((2, 3, 8), (8,), (8,)))
    ours = layer_norm(*(ops.cast(a, dtype) for a in (x, gamma, beta)), 1e-6)
    assert keras.backend.standardize_dtype(ours.dtype) == dtype
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    expected = normal * gamma + beta
    np.testing.assert_allclose(numpy(ops.cast(ours, "float32")), expected, atol=tolerance)


def test_what_jax_compiles_is_kept(tmp_path):
    program = "from keras_transformer.ops import keep_compilations; keep_compilations();"
    if BACKEND == "jax":
        program += (
            "import jax; jax.config.update('jax_persistent_cache_min_compile_time_secs', 0);"
            "jax.jit(lambda x: x * 2)(1.0)"
        )
    root = Path(keras_transformer.__file__).parents[1]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(root)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    kept = list(tmp_path.glob("keras_transformer/jax/*"))
    assert bool(kept) == (BACKEND == "jax")  # the others have nothing to keep


def test_memory_may_be_kept_at_any_time():
    reuse_memory()
    reuse_memory()
    assert np.ones(10_000_000).sum() == 10_000_000
