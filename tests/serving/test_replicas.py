"""Processes that compute: killed, started again, replaced, closed."""

import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Replicas, Settings, create_app, replica, replicas
from keras_transformer.serving.queue import Batcher
from keras_transformer.system.child import ChildEndedError

FAKE = (sys.executable, str(Path(__file__).with_name("fake_replica.py")), replica.__file__)
RESTARTS = "keras_transformer_replica_restarts_total "


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "version").write_text("old")
    return tmp_path


@pytest.fixture
def pool(folder, monkeypatch):
    """Two fake replicas."""
    monkeypatch.setattr(replicas, "COMMAND", FAKE)
    one = Replicas([folder], 2)
    yield one
    one.close()


def handler_of(pool):
    (handler,) = pool.load().route("en", "de")
    return handler


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def facts(handler):
    """Return process, visible GPU and cores of a replica that is free."""
    return json.loads(handler.search(["facts"])[0][0])


def test_batches_are_computed_at_the_same_time(pool, folder):
    handler = handler_of(pool)
    batcher = Batcher(tokens_per_batch=4, delay=0.0, threads=2)
    futures = [batcher.submit(handler, ["wait"], costs=[4]) for _ in range(2)]
    until(lambda: len(list(folder.glob("waits-*"))) == 2)
    (folder / "go").touch()
    assert [future.result(30) for future in futures] == [[["WAIT"]]] * 2
    batcher.close()


def test_a_batch_whose_replica_ends_is_computed_again(pool):
    handler = handler_of(pool)
    restarts = []
    pool.restarted = lambda: restarts.append(1)
    assert handler.search(["one", "die once"], 2) == [["ONE", "old"], ["DIE ONCE", "old"]]
    until(lambda: restarts == [1] and pool.alive() == 2)


@pytest.mark.parametrize("count", [1, 2])
def test_replicas_that_end_while_idle_are_started_again(pool, count):
    handler = handler_of(pool)
    before = [one._process.pid for one in pool._places]
    for process in before[:count]:
        os.kill(process, signal.SIGKILL)
    assert handler.search(["one"]) == [["ONE"]]
    until(lambda: pool.alive() == 2 and facts(handler)[0] not in before[:count])


def test_a_text_that_kills_replicas_fails_alone(pool):
    handler = handler_of(pool)
    kills = []
    pool.restarted = lambda: kills.append(1)
    with pytest.raises(ChildEndedError, match="ended by signal 9"):
        handler.search(["die"])
    until(lambda: pool.alive() == 2)
    assert len(kills) == 3
    batcher = Batcher(delay=0.5, threads=2)
    texts = ["one", "die", "two"]
    one, bad, two = [batcher.submit(handler, [text]) for text in texts]  # one batch
    assert one.result(30) == [["ONE"]] and two.result(30) == [["TWO"]]
    with pytest.raises(ChildEndedError):
        bad.result(30)
    batcher.close()


def test_errors_are_told_apart(pool):
    handler = handler_of(pool)
    with pytest.raises(ValueError, match="a bad text"):
        handler.search(["bad"])
    with pytest.raises(RuntimeError, match="(?s)Traceback.*KeyError: 'a bug'"):
        handler.search(["fail"])
    assert handler.search(["one"]) == [["ONE"]] and pool.alive() == 2


def test_replicas_are_replaced_one_by_one(pool, folder):
    handler = handler_of(pool)
    found, stop = [], threading.Event()

    def ask_on():
        while not stop.is_set():
            found.append(handler.search(["one"], 2))
            time.sleep(0.01)

    with ThreadPoolExecutor() as executor:
        asking = [executor.submit(ask_on) for _ in range(3)]
        (folder / "version").write_text("new")
        fresh = handler_of(pool)
        assert handler.search(["one"], 2) == fresh.search(["one"], 2) == [["ONE", "new"]]
        (folder / "version").write_text("broken")
        with pytest.raises(ValueError, match="the models are broken"):
            pool.load()
        assert handler.search(["one"], 2) == [["ONE", "new"]] and pool.alive() == 2
        stop.set()
    assert all(x.exception() is None for x in asking)
    assert {answer[0][1] for answer in found} <= {"old", "new"}


def test_a_replica_that_computes_is_replaced_after_its_batch(pool, folder):
    handler = handler_of(pool)
    with ThreadPoolExecutor() as executor:
        waiting = executor.submit(handler.search, ["wait"], 2)
        until(lambda: list(folder.glob("waits-*")))
        (folder / "version").write_text("new")
        pool.load()
        assert handler.search(["one"], 2) == [["ONE", "new"]]
        (folder / "go").touch()
        assert waiting.result(30) == [["WAIT", "old"]]
    until(lambda: len(pool._running) == 2)


def test_a_restart_is_tried_until_it_succeeds(pool, folder):
    handler = handler_of(pool)
    tried = []
    pool.restarted = lambda: tried.append(1)
    assert replicas.LONGEST_PAUSE == 5  # seconds
    (folder / "version").write_text("broken")
    for left in [1, 0]:
        os.kill(facts(handler)[0], signal.SIGKILL)
        until(lambda left=left: pool.alive() == left)
    with ThreadPoolExecutor() as executor:
        waiting = executor.submit(handler.search, ["one"])
        until(lambda: len(tried) >= 4)
        assert not waiting.done()
        (folder / "version").write_text("new")
        assert waiting.result(30) == [["ONE"]]
    until(lambda: pool.alive() == 2)


def test_closing_ends_the_processes(pool, folder):
    handler = handler_of(pool)
    process, *_ = facts(handler)
    with ThreadPoolExecutor() as executor:
        waiting = executor.submit(handler.search, ["wait"])
        until(lambda: list(folder.glob("waits-*")))
        pool.close()
        with pytest.raises((ChildEndedError, RuntimeError)):
            waiting.result(30)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(RuntimeError, match="closed"):
        handler.search(["one"])
    assert pool.alive() == 0


def test_each_replica_has_its_cores_and_its_gpu(folder, monkeypatch):
    monkeypatch.setattr(replicas, "COMMAND", FAKE)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    pool = Replicas([folder], 2, ["4", "GPU-5"])
    handler = handler_of(pool)
    with ThreadPoolExecutor() as executor:
        first = executor.submit(handler.search, ["facts", "wait"])
        until(lambda: list(folder.glob("waits-*")))
        other = facts(handler)
        (folder / "go").touch()
        found = [json.loads(first.result(30)[0][0]), other]
    pool.close()
    assert sorted(device for _, device, _ in found) == ["4", "GPU-5"]
    cores = sorted(os.sched_getaffinity(0))
    expected = [cores] * 2 if len(cores) == 1 else [cores[::2], cores[1::2]]
    assert sorted(own for *_, own in found) == sorted(expected)


def test_the_first_error_of_loading_is_told_at_once(folder, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(replicas, "COMMAND", FAKE)
    pool = Replicas([folder / "none"], 2)
    with pytest.raises(OSError, match="none"):
        pool.load()
    assert not pool._running
    with pytest.raises(ValueError, match="devices must be 2, one for each replica, got .'0'."):
        Replicas([folder], 2, ["0"])
    with pytest.raises(ValueError, match="the numbers or UUIDs of GPUs, got .'0', ''."):
        Replicas([folder], 2, ["0", ""])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    with pytest.raises(ValueError, match="among those in CUDA_VISIBLE_DEVICES, 2,3, got '0'"):
        Replicas([folder], 2, ["0", "2"])
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, got 0"):
        Replicas([folder], 0)


def test_a_server_without_replicas_alive_is_not_healthy(pool, folder):
    app = create_app(pool.load, Settings(), pool)
    with TestClient(app) as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert "keras_transformer_replicas 2.0" in client.get("/metrics").text
        (folder / "version").write_text("broken")
        handler = app.state.service.catalogue.models["fake"].any.handler(("en", "de"))
        with ThreadPoolExecutor() as executor:
            dying = executor.submit(handler.search, ["die"])
            until(lambda: client.get("/health").status_code == 503)
            assert "keras_transformer_replicas 0.0" in client.get("/metrics").text
            (folder / "version").write_text("new")
            assert isinstance(dying.exception(30), ChildEndedError)
        until(lambda: client.get("/health").status_code == 200)

        def restarts():
            lines = client.get("/metrics").text.splitlines()
            return [float(x.removeprefix(RESTARTS)) for x in lines if x.startswith(RESTARTS)]

        until(lambda: restarts() >= [3.0])  # the last one is counted by another thread


def test_a_stopping_server_finishes_what_it_accepted_and_ends_its_replicas(pool, folder):
    app = create_app(pool.load, Settings(), pool)
    with TestClient(app):
        service = app.state.service
        handler = service.catalogue.models["fake"].any.handler(("en", "de"))
        process, *_ = facts(handler)
        futures = [service.batcher.submit(handler, ["wait", "one"]) for _ in range(3)]
        until(lambda: list(folder.glob("waits-*")))
        threading.Timer(0.2, (folder / "go").touch).start()
    assert [x.result(0) for x in futures] == [[["WAIT"], ["ONE"]]] * 3
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_stopping_server_does_not_wait_for_replicas_that_are_gone(pool, folder):
    app = create_app(pool.load, Settings(timeout=0.5), pool)
    with TestClient(app):
        service = app.state.service
        handler = service.catalogue.models["fake"].any.handler(("en", "de"))
        (folder / "version").write_text("broken")
        for _ in range(2):
            service.batcher.submit(handler, ["die"])
        until(lambda: pool.alive() == 0)
        last = service.batcher.submit(handler, ["one"])
    assert isinstance(last.exception(0), RuntimeError)


def test_a_replica_that_hangs_is_ended(pool, folder, monkeypatch):
    monkeypatch.setattr(replicas, "LONGEST_BATCH", 0.2)
    monkeypatch.setattr(replicas, "TRIES", 1)
    handler = handler_of(pool)
    with pytest.raises(ChildEndedError):
        handler.search(["wait"])
    until(lambda: pool.alive() == 2)


def test_all_apis_over_real_models(folders, translators, client):
    pool = Replicas(folders, 2)
    asked = [
        ("/translate", dict(q="one two. three!", source="en", target="de", alternatives=2)),
        ("/translate", dict(q=["one", "two"], source="auto", target="fr")),
        ("/translate", dict(q="<b>one</b> two", source="en", target="de", format="html")),
        ("/translate", dict(q="<b>one</b> two", source="en", target="fr", format="html")),
        ("/attention", dict(q="one two", source="en", target="de")),
        ("/attention", dict(q="one " * 100, source="en", target="de", translation="a")),
        ("/detect", dict(q="one two")),
        ("/v1/models/de-fr:predict", dict(instances=["one two", "six"])),
        ("/v1/models/de-fr:predict", dict(inputs="seven")),
    ]
    settings = Settings(most_alternatives=3, timeout=600)
    with TestClient(create_app(pool.load, settings, pool)) as other:
        for path, body in asked:
            mine, theirs = (x.post(path, json=body) for x in (other, client))
            assert (mine.status_code, mine.json()) == (theirs.status_code, theirs.json())
        form = dict(source="en", target="de")
        posted = other.post("/translate_file", data=form, files={"file": ("a.txt", b"one two")})
        (expected,) = translators[0].translate(["one two"])
        assert other.get(posted.json()["translatedFileUrl"]).text == expected
        assert other.get("/languages").json() == client.get("/languages").json()
