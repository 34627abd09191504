"""The process of a replica: its pipes, its signals, its end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keras_transformer import backend
from keras_transformer.serving import replica
from keras_transformer.serving.replica import Replica
from keras_transformer.system.child import ChildEndedError

FAKE = (sys.executable, str(Path(__file__).with_name("fake_replica.py")), replica.__file__)
ASKED = "fake", "1", ("en", "de"), "search"


@pytest.fixture
def fake(tmp_path):
    (tmp_path / "version").write_text("old")
    task = dict(specifications=[str(tmp_path)], device=None, options={})
    one = Replica(task, command=FAKE)
    one.load()
    yield one
    one.stop()


def test_texts_of_any_script_come_back(fake):
    texts = ["größe", "日本", "\n\r\u2028\x85", "😀", ""]
    assert fake.ask(*ASKED, texts, 1, 9) == [[text.upper()] for text in texts]
    assert fake.models[0]["name"] == "fake"


def test_signals_to_the_whole_service_are_the_server_s(fake):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(fake._process.pid, number)
        assert fake.ask(*ASKED, ["one"], 1, 9) == [["ONE"]]
    assert fake.is_alive()


def test_a_replica_ends_with_its_server_while_it_computes(fake, tmp_path):
    fake.send([*ASKED, ["wait"], 1, 9])
    while not list(tmp_path.glob("waits-*")):
        time.sleep(0.005)
    fake._process.stdin.close()  # as the system does when a process is killed
    assert fake._process.wait(30) == -signal.SIGKILL  # with its children, if it had any
    with pytest.raises(ChildEndedError, match="ended by signal 9"):
        fake.ask(*ASKED, ["one"], 1, 9)


def test_a_replica_that_is_stopped_gives_no_answer(fake):
    fake.stop()
    fake.stop()
    with pytest.raises(ChildEndedError, match="ended by signal 9"):
        fake.ask(*ASKED, ["one"], 1, 9)


def test_models_of_a_replica(folders, translators):
    models, compute = replica.load(list(map(str, folders)), None, {"beam_size": 2})
    assert [x["name"] for x in models] == ["en-de", "de-fr"]
    assert models[0]["pairs"] == [(("en", "de"), ("en", "de"))] and models[0]["max_length"] == 48
    sources, _ = compute("de-fr", "1", ["de", "fr"], "read", ["one two"])
    translations = compute("de-fr", "1", ["de", "fr"], "search", sources, 1, 100)
    assert translations == [translators[1].translate(["one two"], beam_size=2)]
    with pytest.raises(ValueError, match="en-fr from en to fr was replaced by other models"):
        compute("en-fr", "1", ["en", "fr"], "search", sources, 1, 100)


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(backend, "count_gpus", lambda: 0)
    with pytest.raises(ValueError, match="devices must be GPUs that .* sees, got '7'"):
        replica.load([], "7", {})


def test_the_module_runs_without_keras():
    code = "import runpy, sys; runpy.run_path(sys.argv[1]); print('keras' in sys.modules)"
    command = [sys.executable, "-c", code, replica.__file__]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "False\n"
