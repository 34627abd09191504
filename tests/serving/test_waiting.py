"""Jobs that wait: clients take turns, and none fills the queue."""

import pytest

from keras_transformer.serving import turns
from keras_transformer.serving.waiting import QueueFullError, TextJob, TooLargeError, Waiting


def job_of(client, *costs, key="search"):
    token = turns.current.set(client and turns.Client(client))
    try:
        return TextJob(key, lambda texts: texts, [str(x) for x in costs], list(costs))
    finally:
        turns.current.reset(token)


def test_clients_take_turns_and_so_do_their_jobs():
    waiting = Waiting(100)
    one, other, third = job_of("a", 1, 2), job_of("a", 3), job_of("b", 4, 5)
    for job in (one, other, third):
        waiting.add(job)
    assert len(waiting) == 3 and waiting.tokens == 15 and waiting.first() is one
    assert waiting.take(8) == {one: [0], third: [0], other: [0]}
    assert waiting.tokens == 7 and len(waiting) == 2 and waiting.first() is third
    assert waiting.take(100) == {third: [1], one: [1]}
    assert not waiting and waiting.tokens == 0


def test_other_searches_wait_and_a_job_that_is_removed_does_not():
    waiting = Waiting(100)
    one, other = job_of("a", 1), job_of("b", 2, key="other search")
    waiting.add(one)
    waiting.add(other)
    waiting.remove(one)
    assert waiting.take(100) == {other: [0]} and not waiting


def test_a_client_has_half_of_the_queue():
    waiting = Waiting(10)
    waiting.add(job_of("a", 5))
    token = turns.current.set(turns.Client("a"))
    try:
        with pytest.raises(QueueFullError, match="5 of at most 5 tokens of yours are waiting"):
            waiting.add(job_of("a", 1))
        with pytest.raises(TooLargeError, match="at most 5 tokens, got 6"):
            waiting.add(job_of("a", 6))
    finally:
        turns.current.reset(token)
    waiting.add(job_of("b", 5))
    with pytest.raises(QueueFullError, match="10 of at most 10 tokens are waiting"):
        waiting.check(1)
