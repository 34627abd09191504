"""Work in threads: the results in order, one thread each inside, errors, interruption."""

import threading

import pytest

from keras_transformer.backend import BACKEND, num_workers, on_all_cores, workers
from keras_transformer.system.interruption import GivenUpError, check, given_up_if


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(workers, "num_workers", lambda: 3)


def test_results_are_in_order_and_come_from_several_threads(three):
    together = threading.Barrier(3, timeout=30)  # broken unless three threads wait at once

    def work(x):
        together.wait()
        return -x

    assert on_all_cores(work, range(6)) == [0, -1, -2, -3, -4, -5]
    assert on_all_cores(work, []) == []


def test_one_item_is_computed_by_the_caller(three):
    assert on_all_cores(lambda _: threading.current_thread(), [1]) == [threading.current_thread()]


def test_the_first_error_is_raised_and_the_rest_is_left(three):
    begun = []

    def work(x):
        begun.append(x)
        raise ValueError(f"item {x}")

    with pytest.raises(ValueError, match="item 0"):
        on_all_cores(work, range(1000))
    assert len(begun) < 1000


def test_a_thread_is_interrupted_as_its_caller_is(three):
    on_all_cores(lambda _: check(), range(3))
    with given_up_if(lambda: True), pytest.raises(GivenUpError):
        on_all_cores(lambda _: check(), range(3))


@pytest.mark.skipif(BACKEND != "torch", reason="the threads of other backends are shared")
def test_each_thread_computes_alone_and_the_number_comes_back(three):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert num_workers() == 2
        assert on_all_cores(lambda _: torch.get_num_threads(), range(4)) == [1] * 4
        assert torch.get_num_threads() == 2
        later = []
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert later == [2]
    finally:
        torch.set_num_threads(before)


def test_the_number_of_threads_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    if BACKEND != "torch":  # PyTorch reads it once
        assert num_workers() == 5
    monkeypatch.setattr(workers, "count_gpus", lambda: 1)
    assert num_workers() == 1
