"""Several processes train as one; what they save, one restores."""

import json
import os
import sys

import keras
import numpy as np
import pytest

from keras_transformer.backend import BACKEND, join_processes, replica_sum, summed
from keras_transformer.checkpoints.state import latest, restore_state
from keras_transformer.distribution.launch import launch
from tests.distribution.training import trained
from tests.tiny import FAMILIES

SHARDED = dict(shard_weights=True)
RUNS = {
    "torch": [
        *((family, {}, {}) for family in FAMILIES),
        ("transformer", {}, dict(accumulation=2)),
        ("transformer", {}, dict(dtype="mixed_bfloat16")),
    ],
    "jax": [("transformer", dict(model=2, shard_weights=True), {}), ("llama", SHARDED, {})],
}


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow trains in one process")
def test_two_processes_train_as_one(tmp_path, monkeypatch):
    runs = RUNS[BACKEND]
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    monkeypatch.setenv("XLA_FLAGS", flags)
    program = [sys.executable, "-m", "tests.distribution.together"]
    assert launch([*program, json.dumps(runs), str(tmp_path)], 2) == 0
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


@pytest.mark.skipif(BACKEND != "tensorflow", reason="the other backends join")
def test_a_backend_that_trains_in_one_process():
    with pytest.raises(NotImplementedError, match="several processes need JAX or PyTorch"):
        join_processes(0, 2, "127.0.0.1:1", None)


def test_alone_nothing_is_summed():
    variable = keras.Variable([1.0, 2.0])
    with summed([variable]):
        assert np.asarray(keras.ops.convert_to_numpy(variable)).tolist() == [1.0, 2.0]
    assert replica_sum(3.0) == 3.0
