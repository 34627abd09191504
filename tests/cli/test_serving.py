"""The command that serves models, as a process."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import httpx
import pytest

from keras_transformer.serving import Settings


def test_a_server_swaps_its_models_and_stops_in_order(folder, translator, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "keras_transformer.cli", "serve", str(folder)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--port", str(port)], stderr=log, stdout=log)
    url = f"http://127.0.0.1:{port}"
    try:
        while process.poll() is None:
            try:
                urllib.request.urlopen(f"{url}/health")
                break
            except OSError:
                time.sleep(0.1)
        body = {"q": "one two three", "source": "en", "target": "de"}
        (expected,) = translator.translate(["one two three"])

        def ask():
            return httpx.post(f"{url}/translate", json=body, timeout=60).json()

        assert ask() == {"translatedText": expected}
        process.send_signal(signal.SIGHUP)
        while "reloads_total 1.0" not in httpx.get(f"{url}/metrics", timeout=60).text:
            time.sleep(0.1)
        assert ask() == {"translatedText": expected}
        os.rename(folder, tmp_path / "away")
        process.send_signal(signal.SIGHUP)
        while "those from before stay" not in (tmp_path / "log").read_text():
            time.sleep(0.1)
        os.rename(tmp_path / "away", folder)
        assert ask() == {"translatedText": expected}
        process.terminate()
        assert process.wait(60) == -signal.SIGTERM
        assert "Application shutdown complete" in (tmp_path / "log").read_text()
    finally:
        process.kill()


def test_what_is_no_model_is_said_in_one_line(run, tmp_path):
    result = run("serve", tmp_path / "none", status=2)
    assert "is no saved translator: there is no such folder" in result.stderr
    result = run("serve", tmp_path / "none", "--timeout", 0, status=2)
    assert "timeout must be above 0 seconds, got 0.0" in result.stderr


@pytest.mark.parametrize("name", ["most_waiting", "most_bytes", "requests_per_minute"])
def test_settings_out_of_range(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1"):
        Settings(**{name: 0})
