"""What processes tell each other, tried with threads."""

import json
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from keras_transformer.distribution import processes
from keras_transformer.distribution.places import Place
from keras_transformer.distribution.processes import Processes, current, join
from keras_transformer.system.ports import free_port


def together(count, work, seconds=20.0, indices=None):
    """The results, or the errors, of `work(team)` in processes that have met."""
    address = f"127.0.0.1:{free_port(2)}"

    def run(index):
        try:
            team = Processes(Place(index, count, address), seconds)
            try:
                return work(team)
            finally:
                team.close()
        except Exception as error:
            return error

    indices = range(count) if indices is None else indices
    with ThreadPoolExecutor(len(indices)) as pool:
        return list(pool.map(run, indices))


def test_each_gets_what_all_give():
    def work(team):
        return [team.exchange([team.index, "x"]), team.exchange(None)]

    assert together(3, work) == [[[[0, "x"], [1, "x"], [2, "x"]], [None] * 3]] * 3


def test_alone():
    team = Processes(Place())
    assert team.exchange(5) == [5] and current().count == 1 and join().count == 1
    team.agree({"a": 1})


def test_facts_that_differ_are_named():
    found = together(3, lambda team: team.agree({"option seed": team.index // 2, "same": 1}))
    message = "all processes must have the same option seed, got 0 in process 0 and 1 in process 2"
    assert [str(error) for error in found] == [message] * 3


def test_those_that_do_not_come_are_named():
    found = together(4, lambda team: None, seconds=0.5, indices=[0, 2])
    message = "processes 1, 3 of 4 did not come within 0.5 s"
    assert [(type(x), str(x)) for x in found] == [(TimeoutError, message)] * 2
    (found,) = together(2, lambda team: None, seconds=0.2, indices=[1])
    assert isinstance(found, TimeoutError) and "process 0 did not answer at 127.0.0.1:" in str(
        found
    )


def test_joining_names_those_that_do_not_come(monkeypatch):
    for name, value in (("RANK", 0), ("WORLD_SIZE", 3), ("MASTER_ADDR", "127.0.0.1")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MASTER_PORT", str(free_port(2)))
    monkeypatch.setenv("KERAS_TRANSFORMER_JOIN_SECONDS", "0.2")
    with pytest.raises(TimeoutError, match=r"processes 1, 2 of 3 did not come within 0\.2 s"):
        join()
    assert current().count == 1
    for wrong in ("abc", "0", "nan", "inf"):
        monkeypatch.setenv("KERAS_TRANSFORMER_JOIN_SECONDS", wrong)
        with pytest.raises(ValueError, match=f"JOIN_SECONDS must be seconds above 0.*'{wrong}'"):
            join()


def test_an_index_twice():
    found = together(3, lambda team: None, seconds=5, indices=[0, 1, 1])
    message = "processes must have their own index from 0 to 2; 1 came twice"
    assert [str(error) for error in found] == [message] * 3


SAID = [b"GET / HTTP/1.1\r\n\r\n", b"null\n", b"[1]\n", b"\xff\n", b"", None]


@pytest.mark.parametrize("said", SAID)
def test_a_stranger_is_ignored(said, monkeypatch):
    monkeypatch.setattr(processes, "_GREETING", 2.0)
    address = f"127.0.0.1:{free_port(2)}"
    port = int(address.rsplit(":", 1)[1]) + 1
    silent = []

    def strange():
        while not first.done():
            try:
                stranger = socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                time.sleep(0.05)
                continue
            if said is None:  # it stays, and says nothing
                silent.append(stranger)
                return
            stranger.sendall(said)
            if not said:  # close with a reset
                linger = struct.pack("ii", 1, 0)
                stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            stranger.close()
            return

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(Processes, Place(0, 2, address), 20.0)
        pool.submit(strange).result()
        second = pool.submit(Processes, Place(1, 2, address), 20.0)
        values = pool.submit(second.result().exchange, 2)
        assert first.result().exchange(1) == [1, 2] == values.result()
    for stranger in silent:
        stranger.close()


@pytest.mark.parametrize("later", [0, 1])
def test_a_port_that_is_taken(later):
    port = free_port(2)
    message = f"cannot listen at port {port + later}: .*MASTER_PORT"
    with socket.create_server(("", port + later)), pytest.raises(OSError, match=message):
        Processes(Place(0, 2, f"127.0.0.1:{port}"), 20.0)


def test_one_that_answers_to_nothing(monkeypatch):
    monkeypatch.setattr(processes, "_GREETING", 0.1)
    port = free_port(2)
    message = "process 0 of 2 did not answer"
    with socket.create_server(("", port + 1)), pytest.raises(TimeoutError, match=message):
        Processes(Place(1, 2, f"127.0.0.1:{port}"), 0.1)


def test_one_that_ends_is_named():
    def work(team):
        if team.index == 1:
            return None  # closes its connections
        return team.exchange(1)

    found = together(2, work)
    assert isinstance(found[0], ConnectionError) and str(found[0]) == "process 1 of 2 has ended"


def test_a_folder_that_all_write(tmp_path):
    def work(team):
        with team.replacing(tmp_path / "state") as folder:
            (folder / f"{team.index}.json").write_text(json.dumps(team.index))
        return sorted(path.name for path in (tmp_path / "state").iterdir())

    assert together(2, work) == [["0.json", "1.json"]] * 2


@pytest.mark.parametrize("failing", [0, 1])
def test_a_folder_that_one_cannot_write(tmp_path, failing):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "old").touch()

    def work(team):
        with team.replacing(tmp_path / "state") as folder:
            if team.index == failing:
                raise OSError("the disk is full")
            (folder / "new").touch()

    found = together(2, work)
    assert str(found[failing]) == "the disk is full"
    assert isinstance(found[1 - failing], OSError)  # the connection or the folder is gone
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["old"]
