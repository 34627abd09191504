"""The command that serves models, as a process."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from keras_transformer.system.ports import free_port


@pytest.fixture
def start(folder, tmp_path):
    """`start(*options)`: a server of the folder, always at the same address, which answers."""
    port = free_port()
    command = [sys.executable, "-m", "keras_transformer.cli", "serve", str(folder)]
    processes = []

    def run(*options):
        with (tmp_path / "log").open("wb") as log:
            own = [*command, "--port", str(port), *options]
            process = subprocess.Popen(own, stderr=log, stdout=log)
        processes.append(process)
        url = f"http://127.0.0.1:{port}"
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{url}/health")
                break
            except OSError:
                time.sleep(0.1)
        return process, url

    yield run
    for process in processes:
        process.kill()


def children(process):
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(pid) for task in tasks for pid in task.read_text().split()]


def runs(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # nobody may wait for orphans


def test_a_server_is_killed_starts_again_swaps_its_models_and_stops_in_order(
    start, folder, translator, tmp_path
):
    process, url = start("--replicas", "2")
    body = {"q": "one two three", "source": "en", "target": "de"}
    (expected,) = translator.translate(["one two three"])

    def ask():
        return httpx.post(f"{url}/translate", json=body, timeout=60).json()

    def ask_on():
        while True:
            assert ask() == {"translatedText": expected}

    with ThreadPoolExecutor() as pool:
        asking = [pool.submit(ask_on) for _ in range(4)]
        while 'path="/translate"' not in httpx.get(f"{url}/metrics", timeout=60).text:
            time.sleep(0.1)
        os.kill(children(process)[0], signal.SIGKILL)  # no answer is lost or wrong
        while "replica_restarts_total 1.0" not in httpx.get(f"{url}/metrics", timeout=60).text:
            time.sleep(0.1)
        assert not any(x.done() for x in asking)
        orphans = children(process)
        process.kill()
    assert orphans
    while any(map(runs, orphans)):
        time.sleep(0.1)
    assert all(isinstance(x.exception(), httpx.TransportError) for x in asking)
    process, url = start()
    assert ask() == {"translatedText": expected}
    process.send_signal(signal.SIGHUP)
    while "reloads_total 1.0" not in httpx.get(f"{url}/metrics", timeout=60).text:
        time.sleep(0.1)
    assert ask() == {"translatedText": expected}
    os.rename(folder, tmp_path / "away")
    process.send_signal(signal.SIGHUP)
    while "the old ones stay in use" not in (tmp_path / "log").read_text():
        time.sleep(0.1)
    os.rename(tmp_path / "away", folder)
    assert ask() == {"translatedText": expected}
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    log = (tmp_path / "log").read_text()
    assert f"serving at {url}\n" in log and "Application shutdown complete" in log


def test_what_is_no_model_is_said_in_one_line(run, tmp_path):
    result = run("serve", tmp_path / "none", status=2)
    assert "is not a saved translator: there is no such folder" in result.stderr
    result = run("serve", tmp_path / "none", "--timeout", 0, status=2)
    assert "timeout must be above 0 seconds, got 0.0" in result.stderr


def test_an_empty_key_does_not_open_the_server(run, folder, monkeypatch):
    monkeypatch.setenv("KERAS_TRANSFORMER_API_KEY", "")
    result = run("serve", folder, status=2)
    assert "KERAS_TRANSFORMER_API_KEY must be a key, or absent, got 'nothing'" in result.stderr
