"""Requests that arrive together become one search."""

import threading
import time

import pytest

from keras_transformer.serving import queue, turns
from keras_transformer.serving.queue import Batcher, HandlerError
from keras_transformer.serving.turns import Client
from keras_transformer.serving.waiting import QueueFullError, TooLargeError
from keras_transformer.system import interruption


class Upper:
    """Translates by capitals; remembers its batches; waits while the gate is shut."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def read(self, texts):
        return texts, [len(text) for text in texts]

    def search(self, texts, num_hypotheses, tokens_per_batch):
        self.gate.wait(10)
        self.batches.append(list(texts))
        if any("bad" in text for text in texts):
            raise ValueError("a bad text")
        return [[f"{text.upper()}{i}" for i in range(num_hypotheses)] for text in texts]


@pytest.fixture
def batcher():
    one = Batcher(tokens_per_batch=10, delay=0.0, most_waiting=40)
    yield one
    one.close()


def behind(batcher, handler, *requests):
    """Submits requests while a first batch is computed, so that all of them wait together."""
    handler.gate.clear()
    first = batcher.submit(handler, ["_"])
    while batcher.waiting:
        time.sleep(0.001)
    futures = [batcher.submit(handler, texts) for texts in requests]
    handler.gate.set()
    first.result(10)
    return futures


def test_requests_that_wait_share_a_batch(batcher):
    handler = Upper()
    futures = behind(batcher, handler, ["ab", "c"], ["d"])
    assert [future.result(10) for future in futures] == [[["AB0"], ["C0"]], [["D0"]]]
    assert sorted(handler.batches[1]) == ["ab", "c", "d"] and len(handler.batches) == 2


def test_a_batch_has_its_tokens_and_takes_from_each_request_in_turn(batcher):
    handler = Upper()
    long, short = behind(batcher, handler, ["aaaa", "bbbb", "cccc", "dddd"], ["eeee"])
    assert short.result(10) == [["EEEE0"]]
    assert len(long.result(10)) == 4
    assert "eeee" in handler.batches[1]
    assert all(sum(map(len, batch)) <= 10 for batch in handler.batches)


@pytest.fixture
def as_client():
    """Function that makes the current client another one, for the test."""
    before = turns.current.set(None)
    yield turns.current.set
    turns.current.reset(before)


def test_a_batch_takes_from_each_client_in_turn(batcher, as_client):
    handler = Upper()
    handler.gate.clear()
    first = batcher.submit(handler, ["_"])
    while batcher.waiting:
        time.sleep(0.001)
    as_client(Client("many"))
    futures = [batcher.submit(handler, ["aaaa"]) for _ in range(5)]
    as_client(Client("one"))
    futures.append(batcher.submit(handler, ["bbbb"]))
    handler.gate.set()
    assert first.result(10) and all(future.result(10) for future in futures)
    assert handler.batches[1] == ["aaaa", "bbbb"]


def test_files_have_batches_of_their_own_and_take_turns(batcher, as_client):
    handler = Upper()
    handler.gate.clear()
    first = batcher.submit(handler, ["_"])
    while batcher.waiting:
        time.sleep(0.001)
    as_client(Client("a", sends_file=True))
    file = batcher.submit(handler, ["ffff"] * 4)
    as_client(Client("a"))
    text = batcher.submit(handler, ["t"])
    handler.gate.set()
    assert first.result(10) and text.result(10) and file.result(10)
    assert handler.batches[1:] == [["ffff"], ["t"], ["ffff"], ["ffff"] * 2]


def test_batches_of_files_have_the_size_that_is_short(batcher, as_client, monkeypatch):
    class Slow(Upper):
        def search(self, texts, num_hypotheses, tokens_per_batch):
            time.sleep(0.05 * len(texts) if "s" in texts else 0)
            return super().search(texts, num_hypotheses, tokens_per_batch)

    monkeypatch.setattr(queue, "LONGEST", 0.2)
    handler = Slow()
    as_client(Client("a", sends_file=True))
    assert batcher.submit(handler, ["f"] * 20).result(10)
    assert batcher.submit(handler, ["s"] * 16).result(10)
    as_client(Client("a"))
    assert batcher.submit(handler, ["t"] * 10).result(10)
    sizes = [len(batch) for batch in handler.batches]
    assert sizes[:6] == [2, 4, 8, 6, 10, 5] and sizes[-1] == 10  # texts have whole batches


def test_a_client_and_all_files_have_half_of_the_queue(batcher, as_client):
    handler = Upper()
    handler.gate.clear()
    futures = [batcher.submit(handler, ["_"])]
    while batcher.waiting:
        time.sleep(0.001)
    as_client(Client("a", sends_file=True))
    with pytest.raises(TooLargeError, match="at most 20 tokens, got 21"):
        batcher.submit(handler, ["x" * 7] * 3)
    futures.append(batcher.submit(handler, ["x" * 8] * 2))
    as_client(Client("b", sends_file=True))
    with pytest.raises(QueueFullError, match="16 of at most 20 tokens of files are waiting"):
        batcher.check(5)
    futures.append(batcher.submit(handler, ["x" * 4]))
    as_client(Client("b"))
    gone = batcher.submit(handler, ["y" * 10] * 2)
    with pytest.raises(QueueFullError, match="20 of at most 20 tokens of yours are waiting"):
        batcher.check(1)
    as_client(Client("c"))
    with pytest.raises(QueueFullError, match="40 of at most 40 tokens are waiting"):
        batcher.check(1)
    assert gone.cancel()
    batcher.check(20)
    handler.gate.set()
    assert all(future.result(10) for future in futures)
    assert batcher.waiting == 0


def test_a_text_longer_than_a_batch_is_one(batcher):
    assert batcher.submit(Upper(), ["x" * 30]).result(10) == [["X" * 30 + "0"]]


def test_different_searches_do_not_mix(batcher):
    handler = Upper()
    handler.gate.clear()
    first = batcher.submit(handler, ["_"])
    while batcher.waiting:
        time.sleep(0.001)
    one, two = batcher.submit(handler, ["a"], 1), batcher.submit(handler, ["a"], 2)
    handler.gate.set()
    assert first.result(10) and one.result(10) == [["A0"]] and two.result(10) == [["A0", "A1"]]
    assert len(handler.batches) == 3


def test_too_much_is_refused_and_nothing_else(batcher):
    handler = Upper()
    handler.gate.clear()
    futures = [batcher.submit(handler, ["_"])]
    while batcher.waiting:
        time.sleep(0.001)
    futures += [batcher.submit(handler, ["x" * 10]) for _ in range(4)]
    with pytest.raises(QueueFullError, match="40 of at most 40 tokens are waiting"):
        batcher.submit(handler, ["y"])
    handler.gate.set()
    assert all(future.result(10) for future in futures)
    assert batcher.waiting == 0


def test_what_can_never_wait_is_refused_for_good(batcher):
    assert batcher.submit(Upper(), ["x" * 20] * 2).result(10)
    with pytest.raises(TooLargeError, match="a request must have at most 40 tokens, got 41"):
        batcher.submit(Upper(), ["x" * 20] * 2 + ["y"])
    with pytest.raises(TooLargeError, match="got 41"):
        batcher.call(int, cost=41)
    assert batcher.waiting == 0


def test_who_no_longer_waits_is_not_translated(batcher):
    handler = Upper()
    handler.gate.clear()
    first = batcher.submit(handler, ["_"])
    while batcher.waiting:
        time.sleep(0.001)
    gone, here = batcher.submit(handler, ["gone"]), batcher.submit(handler, ["here"])
    assert batcher.waiting == 8
    assert gone.cancel()
    assert batcher.waiting == 4  # at once
    handler.gate.set()
    assert first.result(10) and here.result(10) == [["HERE0"]]
    assert handler.batches[1:] == [["here"]] and batcher.waiting == 0


def test_one_bad_text_spoils_no_other(batcher):
    handler = Upper()
    good, bad = behind(batcher, handler, ["good"], ["bad"])
    assert good.result(10) == [["GOOD0"]]
    with pytest.raises(ValueError, match="a bad text"):
        bad.result(10)
    assert batcher.submit(handler, ["next"]).result(10) == [["NEXT0"]]


def test_an_handler_that_leaves_out_texts_ends_no_thread(batcher):
    class Lazy(Upper):
        def search(self, texts, num_hypotheses, tokens_per_batch):
            return super().search(texts, num_hypotheses, tokens_per_batch)[1:]

    with pytest.raises(HandlerError, match="the handler gave 1 results for 2 texts"):
        batcher.submit(Lazy(), ["a", "b"]).result(10)
    assert batcher.submit(Upper(), ["next"]).result(10) == [["NEXT0"]]


def test_functions_are_called_in_their_turn(batcher):
    names = batcher.call(lambda: threading.current_thread().name)
    assert names.result(10) == "translate"
    with pytest.raises(ZeroDivisionError):
        batcher.call(lambda: 1 / 0).result(10)


def test_closing_finishes_what_was_accepted():
    batcher, handler = Batcher(tokens_per_batch=4), Upper()
    futures = behind(batcher, handler, *[["abcd"]] * 8)
    batcher.close()
    assert all(future.result(0) == [["ABCD0"]] for future in futures)
    with pytest.raises(QueueFullError, match="shutting down"):
        batcher.submit(handler, ["late"])


def test_nothing_is_answered_at_once(batcher):
    assert batcher.submit(Upper(), []).result(0) == []


@pytest.mark.parametrize("name", ["tokens_per_batch", "most_waiting"])
def test_values_out_of_range(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        Batcher(**{name: 0})


@pytest.mark.once("threads only; no tensors")
def test_a_search_that_nobody_waits_for_is_given_up_between_steps(batcher):
    steps, ended = [], threading.Event()

    class Steps(Upper):
        def search(self, texts, num_hypotheses, tokens_per_batch):
            if texts != ["slow", "slow"]:
                return super().search(texts, num_hypotheses, tokens_per_batch)
            try:
                for step in range(10_000):
                    interruption.check()
                    steps.append(step)
                    time.sleep(0.001)
            finally:
                ended.set()
            raise AssertionError("it was not given up")

    handler = Steps()
    one, two = behind(batcher, handler, ["slow"], ["slow"])
    while not steps:
        time.sleep(0.001)
    assert one.cancel() and not ended.wait(0.05)  # another request waits for the batch
    assert two.cancel() and ended.wait(10)
    assert batcher.submit(handler, ["next"]).result(10) == [["NEXT0"]]
    assert batcher.waiting == 0
