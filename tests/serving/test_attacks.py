"""Attacks on a server in a process of its own: bounds of time and memory, and it still answers."""

import importlib
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import httpx
import pytest

from keras_transformer.system.ports import free_port
from tests.serving.attacks import tools

ATTACKS = sorted(x.stem for x in (Path(__file__).parent / "attacks").glob("*.py"))
ATTACKS.remove("tools")
# Seconds until a request beside an attack is answered: one that needs nothing but the event loop,
# and one for which a model computes. On a machine that is busy with something else they are longer.
HEALTH, TRANSLATION, USUAL = 1.0, 5.0, 0.2
HONEST = "127.0.0.2"  # address of the client that asks for translations beside an attack
pytestmark = [
    pytest.mark.once("requests and answers: the translator alone knows tensors"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]


@pytest.fixture(scope="module")
def server(folders, tmp_path_factory):
    """The process and the address of a server."""
    port = free_port()
    command = [sys.executable, "-m", "keras_transformer.cli", "serve", str(folders[0])]
    command += ["--port", str(port), "--most-kept-bytes", str(tools.MOST_KEPT)]
    path = tmp_path_factory.mktemp("server") / "log"
    with path.open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            while True:
                assert process.poll() is None, path.read_text()
                try:
                    urllib.request.urlopen(f"{url}/ready")
                    break
                except OSError:
                    time.sleep(0.1)
            answers(url)
            yield process, url
        finally:
            process.kill()
    assert "Traceback" not in path.read_text(), path.read_text()[-2000:]


def answers(url):
    """Asks for a translation, from another address than the attack."""
    fields = {"q": "one two three.", "source": "en", "target": "de"}
    transport = httpx.HTTPTransport(local_address=HONEST, verify=False)  # no certificates to load
    with httpx.Client(transport=transport, timeout=60) as client:
        response = client.post(f"{url}/translate", json=fields)
    assert response.status_code == 200, response.text


def is_healthy(url):
    """Asks whether the server lives."""
    urllib.request.urlopen(f"{url}/health", timeout=60).read()


def answers_soon(url, seconds=5):
    """Asks until closed connections are noticed: until then the server may refuse others."""
    begun = time.monotonic()
    while True:
        try:
            return answers(url)
        except httpx.TransportError:
            if time.monotonic() - begun > seconds:
                raise
            time.sleep(0.1)


def memory(pid):
    """Returns the memory of a process and its children in megabytes; shared memory counts once."""
    total, pids = 0, [(pid, None)]
    while pids:
        pid, parent = pids.pop()
        folder = Path(f"/proc/{pid}")
        try:
            command = (folder / "cmdline").read_bytes()
            if command == parent:  # it is about to start another program, in its parent's memory
                continue
            text = (folder / "smaps_rollup").read_text()
            total += int(re.search(r"^Pss: +(\d+) kB", text, re.M)[1]) / 1e3
            for task in (folder / "task").iterdir():
                pids += [(int(x), command) for x in (task / "children").read_text().split()]
        except OSError:  # it ended
            continue
    return total


@pytest.mark.parametrize("name", ATTACKS)
def test_the_server_holds(name, server):
    process, url = server
    module = importlib.import_module(f"tests.serving.attacks.{name}")
    before, most, done = memory(process.pid), [0.0], threading.Event()
    longest, wrong = {is_healthy: 0.0, answers: 0.0}, []
    begun = time.monotonic()
    answers(url)
    slowness = max((time.monotonic() - begun) / USUAL, 1.0)

    def look():
        while not done.wait(0.1):  # to add up a large process's pages takes 10 ms
            most[0] = max(most[0], memory(process.pid))

    def ask(question, pause):
        while not done.wait(pause):
            begun = time.monotonic()
            try:
                question(url)
            except (httpx.TransportError, OSError):  # refused: the most connections are open
                continue
            except Exception as error:
                wrong.append(error)
            longest[question] = max(longest[question], time.monotonic() - begun)

    threads = [threading.Thread(target=look)]
    threads += [threading.Thread(target=ask, args=(is_healthy, 0.1))]
    threads += [threading.Thread(target=ask, args=(answers, 0.5))]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    try:
        module.attack(url)
        seconds = time.monotonic() - begun
        answers_soon(url)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    paused = ", ".join(f"{x.__name__} within {y:.2f} s" for x, y in longest.items())
    print(
        f"{name}: {seconds:.1f} s, {most[0] - before:.0f} MB, {paused}, slow {slowness:.1f} times"
    )
    assert process.poll() is None
    assert not wrong, wrong[0]
    assert seconds < module.SECONDS
    assert most[0] - before < module.MEGABYTES
    assert longest[is_healthy] < HEALTH * slowness and longest[answers] < TRANSLATION * slowness
