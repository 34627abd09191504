"""Processes that are started, and ended, together."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import keras_transformer.distribution.launcher as launching
from keras_transformer.distribution.launcher import launch

SHOW = """
import os, pathlib, sys
names = "PROCESS_ID", "NUM_PROCESSES", "JOB_ADDRESSES"
values = [os.environ["KERAS_DISTRIBUTION_" + name] for name in names]
pathlib.Path(sys.argv[1], values[0]).write_text(" ".join(values))
"""


def test_each_process_has_its_place(tmp_path):
    assert launch([sys.executable, "-c", SHOW, str(tmp_path)], 3) == 0
    found = [(tmp_path / str(index)).read_text().split() for index in range(3)]
    assert [x[:2] for x in found] == [["0", "3"], ["1", "3"], ["2", "3"]]
    assert len({x[2] for x in found}) == 1 and found[0][2].startswith("127.0.0.1:")


def test_one_that_fails_ends_the_others(capfd):
    program = (
        "import os, time; i = os.environ['LOCAL_RANK']; i == '1' and os._exit(3); time.sleep(60)"
    )
    begun = time.monotonic()
    assert launch([sys.executable, "-c", program], 2) == 3
    assert time.monotonic() - begun < 30
    assert "process 1 of 2 ended with status 3: ending the others" in capfd.readouterr().err


def test_a_signal_goes_to_all(tmp_path):
    child = (
        "import os, pathlib, signal, sys, time\n"
        "place = pathlib.Path(sys.argv[1], os.environ['LOCAL_RANK'])\n"
        "signal.signal(15, lambda *_: (place.write_text('ended'), os._exit(143)))\n"
        "place.write_text('begun'); time.sleep(60)\n"
    )
    places = [tmp_path / "0", tmp_path / "1"]

    def send():
        while not all(path.exists() and path.read_text() for path in places):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    sender = threading.Thread(target=send)
    sender.start()
    assert launch([sys.executable, "-c", child, str(tmp_path)], 2) == 143
    sender.join()
    assert [path.read_text() for path in places] == ["ended", "ended"]
    assert signal.getsignal(signal.SIGTERM) == before


STUBBORN = """
import os, pathlib, signal, sys, time
signal.signal(15, signal.SIG_IGN)
pathlib.Path(sys.argv[1], os.environ["LOCAL_RANK"]).write_text(str(os.getpid()))
time.sleep(60)
"""


def pids(folder):
    """The numbers of two stubborn processes, once both run."""
    paths = [folder / "0", folder / "1"]
    while not all(path.exists() and path.read_text() for path in paths):
        time.sleep(0.05)
    return [int(path.read_text()) for path in paths]


@pytest.mark.parametrize("signals,patience", [(1, 0.2), (2, 300)])
def test_those_that_do_not_end(tmp_path, monkeypatch, signals, patience):
    monkeypatch.setattr(launching, "_SAVING", patience)

    def send():
        pids(tmp_path)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1.0)

    sender = threading.Thread(target=send)
    sender.start()
    assert launch([sys.executable, "-c", STUBBORN, str(tmp_path)], 2) == 128 + signal.SIGKILL
    sender.join()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the processes")
def test_the_processes_end_with_one_that_is_killed(tmp_path):
    command = [sys.executable, "-c", STUBBORN, str(tmp_path)]
    call = f"import runpy; runpy.run_path({launching.__file__!r})['launch']({command}, 2)"
    launcher = subprocess.Popen([sys.executable, "-c", call])  # which does not load Keras
    started = pids(tmp_path)
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in started):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_too_few():
    with pytest.raises(ValueError, match="processes must be a whole number of at least 1, got 0"):
        launch([sys.executable], 0)
