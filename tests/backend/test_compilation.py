"""Compilation and random state on the backend in use."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer
from keras_transformer.backend import (
    BACKEND,
    COMPILES_EACH_SHAPE,
    compiled,
    random_state,
    set_random_state,
    without_gradients,
)
from keras_transformer.system.files import MOST_CACHED

numpy = ops.convert_to_numpy


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


def test_compiled_once_for_any_number_of_rows_and_tokens(dense):
    traces = []

    def function(ids, table, limit):
        traces.append(1)
        return ops.take(table, ids, axis=0)[..., 0] + limit

    run, table = compiled(function, dense, varying=[0]), np.arange(6, dtype="float32").reshape(3, 2)
    for shape in ((1, 2), (3, 2), (3, 5), (1, 2)):
        ids = ops.ones(shape, "int32")
        found = numpy(run(ids, ops.convert_to_tensor(table), 4))
        np.testing.assert_array_equal(found, np.full(shape, 6.0))
    assert len(traces) == {"tensorflow": 1, "jax": 3, "torch": 4}[BACKEND]


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


@pytest.mark.skipif(BACKEND != "torch", reason="only PyTorch has such a state")
@pytest.mark.parametrize("name", ["bpu", "cuda:", "cuda:x", "cud`:0", ""])
def test_a_state_of_no_device_is_refused(name):
    with pytest.raises(ValueError, match=f"devices must be cpu or cuda:N, got {name!r}"):
        set_random_state(random_state() | {name: np.zeros(16, "uint8")})


def test_the_backend_is_that_of_keras():
    assert keras.backend.backend() == BACKEND
    assert (BACKEND == "jax") == COMPILES_EACH_SHAPE


@pytest.mark.once("a process of its own")
def test_a_backend_that_keras_has_and_we_do_not():
    root = Path(keras_transformer.__file__).parents[1]
    environment = os.environ | {"KERAS_BACKEND": "numpy", "PYTHONPATH": str(root)}
    result = subprocess.run(
        [sys.executable, "-c", "import keras, keras_transformer.backend"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode != 0
    assert "KERAS_BACKEND must be 'tensorflow', 'jax' or 'torch'" in result.stderr
    assert "got 'numpy'" in result.stderr


PROGRAM = """
import jax, tests.loading
from jax import monitoring
from keras_transformer.backend import keep_compilations
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("cache_hits")))
keep_compilations()
for factor in FACTORS:
    jax.jit(lambda x: x @ x * factor)(jax.numpy.ones((9, 9)))
print(sum(hits), jax.config.jax_compilation_cache_dir, jax.config.jax_compilation_cache_max_size)
"""


def run_jax(home, factors=(2,), count=1, **variables):
    """Run processes at once that compile the programs; return what each printed, and warnings."""
    root = Path(keras_transformer.__file__).parents[1]
    variables = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", **variables}
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(root), **variables}
    environment["XDG_CACHE_HOME"] = str(home)
    if "JAX_COMPILATION_CACHE_DIR" not in variables:
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)  # that of the tests
    program = PROGRAM.replace("FACTORS", str(factors))
    pipe = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    command = [sys.executable, "-c", program]
    processes = [subprocess.Popen(command, env=environment, **pipe) for _ in range(count)]
    results = [x.communicate() for x in processes]
    assert not any(x.returncode for x in processes), results
    return [output.split() for output, _ in results], "".join(errors for _, errors in results)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of caches into which two processes wrote at once."""
    folder = tmp_path_factory.mktemp("home")
    _, warnings = run_jax(folder, (2, 3), count=2)
    assert "compilation cache" not in warnings
    return folder


@pytest.mark.skipif(BACKEND != "jax", reason="the others compile nothing that is kept")
def test_what_jax_compiles_is_kept(home):
    kept = list(home.glob("keras_transformer/jax/*-cache"))
    ((hits, folder, most),), warnings = run_jax(home, (2, 3))
    assert int(hits) == len(kept) > 0 and "compilation cache" not in warnings
    assert folder == str(home / "keras_transformer" / "jax") and most == str(MOST_CACHED)


@pytest.mark.skipif(BACKEND != "jax", reason="the others compile nothing that is kept")
def test_the_cache_of_jax_is_bounded_and_repaired(home, tmp_path):
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    partial, *others = tmp_path.glob("keras_transformer/jax/*-cache")
    most = sum(x.stat().st_size for x in (partial, *others)) + 100
    partial.write_bytes(b"")  # its process was killed
    partial.with_name(partial.name.replace("-cache", "-atime")).unlink()
    limit = {"JAX_COMPILATION_CACHE_MAX_SIZE": str(most)}
    _, warnings = run_jax(tmp_path, (2, 3, 5, 7), **limit)
    kept = set(tmp_path.glob("keras_transformer/jax/*-cache"))
    assert "compilation cache" not in warnings and all(x.stat().st_size for x in kept)
    assert sum(x.stat().st_size for x in kept) <= most
    assert kept - {partial, *others} and {partial, *others} - kept


@pytest.mark.skipif(BACKEND != "jax", reason="the others compile nothing that is kept")
def test_settings_of_the_user_and_a_folder_that_cannot_be_written(tmp_path):
    settings = dict(JAX_COMPILATION_CACHE_DIR=str(tmp_path), JAX_COMPILATION_CACHE_MAX_SIZE="-1")
    ((_, *used),), _ = run_jax(tmp_path, **settings)
    assert used == [str(tmp_path), "-1"] and not (tmp_path / "keras_transformer").exists()
    ((_, folder, _),), warnings = run_jax(os.devnull)
    assert folder == "None" and "compilation cache" not in warnings


def test_nothing_is_kept_without_gradients(dense):
    with without_gradients():
        output = dense(ops.ones((1, 2)))
    if BACKEND == "torch":
        assert dense(ops.ones((1, 2))).requires_grad and not output.requires_grad
    np.testing.assert_allclose(numpy(output), numpy(dense(ops.ones((1, 2)))))
