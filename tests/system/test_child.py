"""Processes that answer lines of JSON."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from keras_transformer.system.child import Child, ChildEndedError

SERVE = f"""
import os, subprocess, sys
sys.path[:0] = {[x for x in sys.path if x]!r}
from keras_transformer.system.child import serve
def answer(asked):
    print("a library prints this")
    if asked == "die":
        os._exit(3)
    if asked == "start":
        return subprocess.Popen(["sleep", "60"]).pid
    return [asked, os.environ.get("NAME"), sorted(os.sched_getaffinity(0))]
serve(answer)
"""


def is_running(number):
    """Return whether a process runs; one that has ended may wait for the system to remove it."""
    try:
        return " Z " not in Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False


@pytest.fixture
def child():
    cores = sorted(os.sched_getaffinity(0))[:1] if hasattr(os, "sched_getaffinity") else []
    one = Child([sys.executable, "-c", SERVE], {"NAME": "x"}, cores)
    yield one
    one.stop()


def test_it_answers_in_order(child):
    cores = sorted(os.sched_getaffinity(0))
    texts = ["größe", "日本", "\n\r\u2028\x85", "😀", {"a": [1, None]}]
    for text in texts:
        child.send(text)
    assert [child.receive() for _ in texts] == [[text, "x", cores[:1]] for text in texts]
    assert sorted(os.sched_getaffinity(0)) == cores


def test_signals_are_the_parents(child):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        child.send(1)
        child.receive()  # it has begun
        os.kill(child._process.pid, number)
        child.send(2)
        assert child.receive()[0] == 2
    assert child.is_alive()


def test_one_that_ends_gives_no_answer(child):
    child.send("die")
    with pytest.raises(ChildEndedError, match="ended with status 3"):
        child.receive()
    child.send(1)
    with pytest.raises(ChildEndedError):
        child.receive()
    assert not child.is_alive()


@pytest.mark.parametrize("end", [lambda child: child._process.stdin.close(), Child.stop])
def test_it_ends_with_its_parent_and_so_do_those_it_started(child, end):
    child.send("start")
    started = child.receive()
    end(child)  # as the system does when a process is killed
    child.wait()
    for _ in range(100):
        if not is_running(started):
            break
        time.sleep(0.1)
    assert not is_running(started)


def test_one_that_is_stopped(child):
    child.stop()
    child.stop()
    with pytest.raises(ChildEndedError, match="by signal 9"):
        child.receive()
