"""Work in threads: the results in order, one thread each inside, errors, interruption."""

import threading

import pytest

from keras_transformer.backend import by_workers, num_workers, workers
from keras_transformer.system.interruption import GivenUpError, check, given_up_if


def test_results_are_in_order_and_come_from_several_threads():
    together = threading.Barrier(3, timeout=30)  # broken unless three threads wait at once

    def work(x):
        together.wait()
        return -x

    assert by_workers(work, range(6), 3) == [0, -1, -2, -3, -4, -5]
    assert by_workers(work, [], 3) == []


def test_one_item_is_computed_by_the_caller():
    assert by_workers(lambda _: threading.current_thread(), [1], 3) == [threading.current_thread()]


def test_the_first_error_is_raised_and_the_rest_is_left():
    begun = []

    def work(x):
        begun.append(x)
        raise ValueError(f"item {x}")

    with pytest.raises(ValueError, match="item 0"):
        by_workers(work, range(1000), 3)
    assert len(begun) < 1000


def test_a_thread_is_interrupted_as_its_caller_is():
    by_workers(lambda _: check(), range(3), 3)
    with given_up_if(lambda: True), pytest.raises(GivenUpError):
        by_workers(lambda _: check(), range(3), 3)


def test_the_number_of_threads_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert num_workers() == 5
    monkeypatch.setattr(workers, "count_gpus", lambda: 1)
    assert num_workers() == 1
