"""Several processes train as one; what they save, one restores."""

import json
import os
import sys
import time

import keras
import numpy as np
import pytest

import keras_transformer.distribution.launcher as launching
from keras_transformer.backend import BACKEND, join_processes, process_group, replica_sum, summed
from keras_transformer.distribution.launcher import launch
from keras_transformer.weights.state import latest, restore_state
from tests.distribution.training import trained

RUNS = {
    "torch": [
        ("transformer", {}, dict(accumulation=2)),
        ("bert", {}, dict(dtype="mixed_bfloat16")),
    ],
    "jax": [
        ("transformer", dict(model=2, shard_weights=True), {}),
    ],
}


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow trains in one process")
def test_two_processes_train_as_one_until_one_fails(tmp_path, monkeypatch, capfd):
    runs = RUNS[BACKEND]
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    monkeypatch.setenv("XLA_FLAGS", flags)
    program = [sys.executable, "-m", "tests.distribution.together"]
    monkeypatch.setattr(launching, "_PATIENCE", 300)
    begun = time.monotonic()
    assert launch([*program, json.dumps(runs), str(tmp_path)], 2) == 1
    assert time.monotonic() - begun < 200  # JAX would wait for the other, up to 300 s
    said = capfd.readouterr().err
    assert "the data are broken" in said
    assert BACKEND != "jax" or "process 1 of 2 has ended" in said  # others may be ended before
    for number, (family, _, options) in enumerate(runs):
        model, history = trained(family, **options)
        found = json.loads((tmp_path / str(number) / "history.json").read_text())
        near = 1e-5 if "dtype" not in options else 0.02
        assert history["loss"][0] - history["loss"][-1] > 0.1
        for name in ("loss", "val_loss", "perplexity"):
            np.testing.assert_allclose(found[name], history[name], rtol=0, atol=20 * near)
        np.testing.assert_allclose(found["loss"], history["loss"], rtol=0, atol=near)
        expected = model.get_weights()
        restore_state(latest(tmp_path / str(number)), model)
        for one, other in zip(expected, model.get_weights(), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=near)


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow trains in one process")
@pytest.mark.parametrize("local,visible,own", [(3, 1, 0), (3, 4, 3), (0, 4, 0), (None, 4, 0)])
def test_the_gpu_of_a_process(local, visible, own, monkeypatch):
    assert joined_with(local, visible, monkeypatch) == own


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow trains in one process")
def test_a_gpu_that_is_not_there(monkeypatch):
    with pytest.raises(ValueError, match="number of the process on its host must be below 2, .*4"):
        joined_with(4, 2, monkeypatch)


def joined_with(local, visible, monkeypatch):
    """The GPU that a process takes of so many."""
    chosen = []
    if BACKEND == "jax":
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(visible))))
        monkeypatch.setattr(process_group.jax.config, "update", lambda name, value: None)
        initialize = lambda *given, **_: chosen.extend(given[3] or [])  # noqa: E731
        monkeypatch.setattr(process_group.jax.distributed, "initialize", initialize)
    else:
        cuda, distributed = process_group.torch.cuda, process_group.torch.distributed
        monkeypatch.setattr(cuda, "is_available", lambda: True)
        monkeypatch.setattr(cuda, "device_count", lambda: visible)
        monkeypatch.setattr(cuda, "set_device", chosen.append)
        monkeypatch.setattr(distributed, "init_process_group", lambda *_, **__: None)
    join_processes(0, 8, "127.0.0.1:1", local)
    return chosen[0] if chosen else 0  # JAX has not chosen


@pytest.mark.skipif(BACKEND != "tensorflow", reason="the other backends join")
def test_a_backend_that_trains_in_one_process():
    with pytest.raises(NotImplementedError, match="several processes need JAX or PyTorch"):
        join_processes(0, 2, "127.0.0.1:1", None)


def test_alone_nothing_is_summed():
    variable = keras.Variable([1.0, 2.0])
    with summed([variable]):
        assert np.asarray(keras.ops.convert_to_numpy(variable)).tolist() == [1.0, 2.0]
    assert replica_sum(3.0) == 3.0
