"""Training on two devices with TensorFlow is training on one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.backend import BACKEND
from keras_transformer.distribution import distribute

RUNS = [("transformer", "accumulating", "float32", 7)]  # and how many rows a batch has
pytestmark = pytest.mark.skipif(BACKEND != "tensorflow", reason="MirroredStrategy is TensorFlow's")


def test_losses_and_weights_are_those_of_one_device():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("logical_devices.py"), json.dumps(RUNS)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["runs"]) == len(RUNS)
    for (_, _, precision, _), run in zip(RUNS, found["runs"], strict=True):
        close = 1e-5 if precision == "float32" else 3e-2
        assert run["replicas"] == 2
        assert run["losses"] < close and run["weights"] < close and run["learnt"] > 0.1, run
        for one, two in run["metrics"]:
            assert two == pytest.approx(one, rel=close), run
        assert run["restored"] == 0
    numbers, differing = found["masks"]
    assert numbers == [0, 1] and 0.4 < differing < 0.6
    assert found["refusal"].startswith("global_clipnorm on several devices of TensorFlow needs")


def test_more_than_the_devices_there_are():
    with pytest.raises(ValueError, match=r"data must be at most \d+, the devices .*, got 1000"):
        distribute(data=1000)
