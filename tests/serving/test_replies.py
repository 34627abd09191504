"""The thread of replies: turns of clients, limits, cancellation, failure, end."""

import threading

import pytest

from keras_transformer.search import Generation
from keras_transformer.serving.replies import Replies, ReplyJob
from keras_transformer.serving.waiting import QueueFullError, TooLargeError

LONG = Generation(max_new_tokens=100, min_new_tokens=100)


class Told(ReplyJob):
    """A job that keeps what it is told."""

    def __init__(self, prompt=(7, 8), search=LONG, **options):
        super().__init__(list(prompt), search, 0, **options)
        self.events, self.ended, self.first = [], threading.Event(), threading.Event()
        self.listen = self.hear

    def hear(self, event):
        self.events.append(event)
        self.first.set()
        if isinstance(event, Exception) or event.end:
            self.ended.set()


@pytest.fixture
def replies(writer):
    made = []

    def make(**options):
        made.append(Replies(writer.model, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_each_is_what_it_is_alone(replies, writer):
    jobs = [Told([7] * i, Generation(max_new_tokens=9)) for i in range(1, 12)]
    thread = replies(num_slots=4)
    thread.submit("me", jobs)
    for job in jobs:
        assert job.ended.wait(60)
        tokens = [event.token for event in job.events if event.end != "stop"]
        assert tokens == writer.generate_ids([job.prompt_ids], job.search)[0]
    assert thread.running == thread.waiting == 0


def test_clients_take_turns(replies):
    thread = replies(num_slots=1)
    order, lock = [], threading.Lock()

    def job(name):
        one = Told(search=Generation(max_new_tokens=3, min_new_tokens=3))
        hear = one.listen

        def listen(event):
            if event.end:
                with lock:
                    order.append(name)
            hear(event)

        one.listen = listen
        return one

    greedy, modest = [job("greedy") for _ in range(6)], [job("modest") for _ in range(2)]
    first = Told()
    thread.submit("other", [first])
    assert first.first.wait(60)
    thread.submit(1, greedy)
    thread.submit(2, modest)
    thread.cancel([first])
    for one in (*greedy, *modest):
        assert one.ended.wait(60)
    assert order == ["greedy", "modest"] * 2 + ["greedy"] * 4


def test_who_is_cancelled_frees_the_slot(replies):
    thread = replies(num_slots=1)
    first, waiting, last = Told(), Told(), Told(search=Generation(max_new_tokens=2))
    thread.submit("me", [first, waiting, last])
    assert first.first.wait(60)
    thread.cancel([waiting])
    thread.cancel([first])
    assert last.ended.wait(60)
    assert not first.ended.is_set() and not waiting.events
    thread.cancel([first, last])  # they have ended


def test_limits(replies):
    thread = replies(num_slots=1, most_waiting=10)
    with pytest.raises(TooLargeError, match="at most 10 tokens, got 11"):
        thread.submit("me", [Told([7] * 11)])
    first = Told()
    thread.submit("me", [first])
    assert first.first.wait(60)
    thread.submit("me", [Told([7] * 6)])
    with pytest.raises(QueueFullError, match="6 of at most 10 tokens are waiting"):
        thread.submit("you", [Told([7] * 5)])
    assert thread.running == 1 and thread.waiting == 6
    with pytest.raises(ValueError, match="most_waiting must be at least 1"):
        replies(most_waiting=0)


def test_what_fails_is_told_and_the_next_works(replies, monkeypatch):
    thread = replies(num_slots=2)
    first, refused = Told(), Told([9999])
    turn = type(thread._slots).turn

    def fail(slots):
        raise RuntimeError("no memory")

    monkeypatch.setattr(type(thread._slots), "turn", fail)
    thread.submit("me", [refused, first])
    assert refused.ended.wait(60) and isinstance(refused.events[0], ValueError)
    assert first.ended.wait(60) and isinstance(first.events[0], RuntimeError)
    monkeypatch.setattr(type(thread._slots), "turn", turn)
    again = Told(search=Generation(max_new_tokens=2))
    thread.submit("me", [again])
    assert again.ended.wait(60) and again.events[-1].end


def test_it_finishes_what_it_accepted(replies):
    thread = replies(num_slots=1)
    jobs = [Told(search=Generation(max_new_tokens=5)) for _ in range(3)]
    thread.submit("me", jobs)
    thread.close()
    assert all(job.ended.is_set() for job in jobs)
    with pytest.raises(QueueFullError, match="shutting down"):
        thread.submit("me", [Told()])
