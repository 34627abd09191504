"""Training on several devices is training on one."""

import json
import os
import subprocess
import sys
from unittest import mock

import keras
import pytest

from keras_transformer.backend import BACKEND
from keras_transformer.distribution import Spread, distribute, gather
from keras_transformer.distribution.layouts import DATA, MODEL, MeshLayout

RUNS = [  # family, options of `trained`, layouts
    ("transformer", {}, dict(data=4, model=2), dict(shard_weights=True)),
    ("llama", dict(accumulation=2), dict(data=4, model=2, shard_weights=True)),
    ("mixture", {}, dict(data=2, model=4)),
]


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution has no other devices")
def test_losses_and_weights_are_those_of_one_device():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    done = subprocess.run(
        [sys.executable, "-m", "tests.distribution.virtual_devices", json.dumps(RUNS)],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    options = [options for _, options, *layouts in RUNS for _ in layouts]
    for run, own in zip(found, options, strict=True):
        near = 1e-5 if "dtype" not in own else 0.02
        assert run["losses"] < near and run["weights"] < near and run["learnt"] > 0.1, run
    split, sharded, _, experts = (run["held"] for run in found)
    assert 0.25 < split < 0.75 and sharded < 0.25 and experts < 0.5


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(model=0), "model must be a whole number of at least 1, got 0"),
        (dict(data=0), "data must be -1 or at least 1, got 0"),
        (dict(data="2"), "data must be -1 or at least 1, got '2'"),
    ],
)
def test_a_mesh_that_does_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        distribute(**options)


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution has no other devices")
def test_more_than_the_devices_there_are():
    with pytest.raises(ValueError, match=r"data \* model must be at most \d+, .*, got 2000"):
        distribute(data=1000, model=2)


@pytest.mark.skipif(BACKEND == "jax", reason="JAX splits products and weights")
@pytest.mark.parametrize("options", [dict(model=2), dict(shard_weights=True)])
def test_a_backend_that_splits_batches_alone(options):
    ((name, value),) = options.items()
    with pytest.raises(NotImplementedError, match=f"{name} must be .* with {BACKEND}, .*{value}"):
        distribute(**options)


@pytest.mark.skipif(BACKEND != "torch", reason="the others have devices")
def test_a_process_of_pytorch_has_one_device():
    assert distribute() == distribute(data=1) == Spread(1, (0, 1))
    with pytest.raises(ValueError, match="data must be 1, one for each process, or -1, got 2"):
        distribute(data=2)


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution has no other devices")
def test_gather_ends_it():
    assert distribute(data=1) == Spread(1, (0, 1))
    assert keras.distribution.distribution() is not None
    gather()
    assert keras.distribution.distribution() is None


@pytest.mark.skipif(BACKEND != "jax", reason="keras.distribution has no other devices")
@pytest.mark.parametrize(
    "parts,message", [(1, "a batch must .* 8 rows, got 4"), (4, "part of a batch .* 2 rows, got 3")]
)
def test_rows_that_the_devices_do_not_divide(parts, message):
    mesh = mock.Mock(spec=keras.distribution.DeviceMesh, shape=(8, 1), axis_names=(DATA, MODEL))
    layout = mock.Mock(spec=MeshLayout, device_mesh=mesh, parts=parts)
    with pytest.raises(ValueError, match=message):
        MeshLayout.get_data_layout(layout, (4 if parts == 1 else 3, 12))
