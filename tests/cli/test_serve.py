"""The command that serves models, as a process."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest


@pytest.fixture
def start(folder, tmp_path):
    """`start()`: a server of the folder, always at the same address, which answers; its log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "keras_transformer.cli", "serve", str(folder)]
    processes = []

    def run():
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen([*command, "--port", str(port)], stderr=log, stdout=log)
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


def test_a_server_is_killed_starts_again_swaps_its_models_and_stops_in_order(
    start, folder, translator, tmp_path
):
    process, url = start()
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
        process.kill()
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
    assert "Application shutdown complete" in (tmp_path / "log").read_text()


def test_what_is_no_model_is_said_in_one_line(run, tmp_path):
    result = run("serve", tmp_path / "none", status=2)
    assert "is not a saved translator: there is no such folder" in result.stderr
    result = run("serve", tmp_path / "none", "--timeout", 0, status=2)
    assert "timeout must be above 0 seconds, got 0.0" in result.stderr
