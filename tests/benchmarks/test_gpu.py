"""Benchmarks of a GPU: its peak, the table of nanoGPT's setting, and the script's arguments."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks import machine, nanogpt, train

pytestmark = pytest.mark.once("runs no model")
SCRIPT = Path(__file__).parents[2] / "benchmarks/gpu.sh"


@pytest.mark.parametrize(
    ("name", "peak"),
    [("NVIDIA H100 PCIe", 756e12), ("NVIDIA H100 80GB HBM3", 989e12), ("NVIDIA A1", None)],
)
def test_peak(name, peak, monkeypatch):
    monkeypatch.setattr(machine, "gpu", lambda: name)
    assert machine.peak() == train.peak_for("bfloat16") == peak
    assert train.peak_for("float32") is None


def test_the_row_of_a_training(tmp_path, monkeypatch):
    def write(command, env, check):
        assert command[command.index("--d-model") + 1] == "384" and check
        assert env["KERAS_BACKEND"] == "jax"
        lines = ["epoch,loss,val_loss", "1,2.5,2.6", "2,1.5,1.46", "3,1.2,1.5"]
        (tmp_path / "log.csv").write_text("\n".join(lines))
        (tmp_path / "metrics.json").write_text('{"validation": {"loss": 1.51, "seconds": 9.7}}')

    monkeypatch.setattr(subprocess, "run", write)
    row = nanogpt.train("jax", tmp_path / "input.txt", tmp_path, nanogpt.SETTING)
    assert row == ["ours-jax", "1.4600", "500", "1.5100", "10"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "PART is missing"), (["a"], "name the folder of the data sets"), (["x", "."], "got x")],
)
def test_wrong_arguments_of_the_script(arguments, message):
    environment = {name: value for name, value in os.environ.items() if name != "KT_DATA"}
    command = ["bash", SCRIPT, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode and message in done.stderr
