"""Free ports."""

import random
import socket

import pytest

from keras_transformer.system import ports
from keras_transformer.system.ports import free_port


def test_a_seed_does_not_choose_the_port():
    found = set()
    for _ in range(5):
        random.seed(1)
        found.add(free_port())
    assert len(found) > 1


def test_all_in_a_row_are_free(monkeypatch):
    first = free_port(4)
    monkeypatch.setattr(ports, "_PORTS", range(first, first + 3))
    assert free_port() in range(first, first + 3)
    with socket.create_server(("127.0.0.1", first + 1)):
        assert {free_port() for _ in range(20)} <= {first, first + 2}
        assert free_port(2) == first + 2
        monkeypatch.setattr(ports, "_PORTS", range(first, first + 2))
        with pytest.raises(OSError, match=f"no 2 free ports in a row from {first} to {first + 2}"):
            free_port(2)
