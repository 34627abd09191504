"""Processes translate what one does, are replaced when they die, and end with their driver."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keras_transformer import translate_corpus
from keras_transformer.corpora import local_executor
from keras_transformer.corpora.local_executor import shares_of_gpus
from keras_transformer.corpora.shards import Shard
from keras_transformer.system.child import ChildEndedError

DRIVER = """
import sys
from keras_transformer import translate_corpus
translate_corpus(*sys.argv[1:], processes=1, shard_lines=4, max_extra_length=6, report=print)
"""


def workers_of(process):
    """Numbers of the processes that a process has started"""
    tasks = Path(f"/proc/{process}/task")
    return [int(x) for task in tasks.iterdir() for x in (task / "children").read_text().split()]


def test_a_worker_and_the_driver_are_killed(folder, source, expected, search, joined, tmp_path):
    if not Path("/proc/self/task").exists():
        pytest.skip("needs /proc to find the processes")
    out = tmp_path / "out"
    command = [sys.executable, "-c", DRIVER, str(folder), str(source), str(out)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    driver.stdout.readline()  # none is done yet
    while not (worker := workers_of(driver.pid)):
        time.sleep(0.01)
    os.kill(worker[0], signal.SIGKILL)  # while it starts or works
    try:
        driver.stdout.readline()
    finally:
        second = workers_of(driver.pid)
        driver.kill()
        driver.wait()
        driver.stdout.close()
    end = time.monotonic() + 60
    while any(Path(f"/proc/{one}/stat").exists() for one in second):
        assert time.monotonic() < end, "the worker of a killed driver lives on"
        time.sleep(0.01)
    before = len(list(out.glob("shard-*.txt")))
    outcome = translate_corpus(folder, source, out, shard_lines=4, processes=2, **search)
    assert 0 < outcome.found <= before and outcome.done == outcome.shards == 8
    assert joined(out) == expected
    assert not [x.name for x in out.iterdir() if x.name.startswith(".")]


def test_gpus_are_shared_out_or_missed(monkeypatch):
    assert shares_of_gpus(2, 0) == [None, None]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3,5,7,8")
    assert shares_of_gpus(2, 2) == ["2,3", "5,7"]
    with pytest.raises(ValueError, match="gpus must be at most 1 for 3 processes.*got 2"):
        shares_of_gpus(3, 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(ValueError, match="gpus must be at most 0 for 1 processes.*got 1"):
        shares_of_gpus(1, 1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="gpus must be at most 0"):
        shares_of_gpus(1, 1)


def test_processes_that_never_start_end_the_job(folder, source, tmp_path, monkeypatch):
    monkeypatch.setattr(local_executor, "_WORKER", [sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(RuntimeError, match="3 worker processes in a row .* with status 7"):
        translate_corpus(folder, source, tmp_path / "out", processes=2)


def test_a_process_that_is_stopped_while_it_is_asked_gives_no_answer():
    process = local_executor._Process({}, [], None)

    class Stopped:
        def send(self, message):
            process.stop()  # as another thread may at any time

        def receive(self):
            raise ChildEndedError

        def stop(self):
            pass

    process._child = Stopped()
    assert process._answer(Shard(0, 0, 1, ())) is None
