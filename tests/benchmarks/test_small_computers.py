"""Sizes of model files, and a process on some of the cores."""

import os

import pytest

from benchmarks import small_computers

pytestmark = pytest.mark.once("files and processes")


def test_megabytes_of_a_model(tmp_path):
    for name, size in (("encoder.onnx", 10), ("decoder.onnx.data", 20), ("source.spm", 40)):
        (tmp_path / name).write_bytes(bytes(size))
    assert small_computers.megabytes(tmp_path) == pytest.approx(30e-6)


def test_a_process_gets_its_threads(monkeypatch):
    program = (
        "import json, os; "
        "print(json.dumps([len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS']]))"
    )
    monkeypatch.setattr(small_computers, "PROGRAM", program)
    assert small_computers.run({}, 1) == [1, "1"]
    assert len(os.sched_getaffinity(0)) >= 1
