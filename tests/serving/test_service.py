"""The state of a server: models that are swapped, counts for Prometheus."""

import asyncio

import pytest

from keras_transformer.search import Generation
from keras_transformer.serving import Catalogue, Settings
from keras_transformer.serving.queue import QueueFullError, TooLargeError
from keras_transformer.serving.replies import Job
from keras_transformer.serving.service import Metrics, Service


def counts(metrics):
    """Return the values of all metrics by name."""
    lines = [x for x in metrics.text().decode().splitlines() if not x.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_batch_is_counted():
    metrics = Metrics()
    metrics.watch(sentences=3, tokens=20, seconds=0.5)
    metrics.watch(sentences=1, tokens=4, seconds=0.25)
    found = counts(metrics)
    assert found["keras_transformer_sentences_total"] == 4
    assert found["keras_transformer_source_tokens_total"] == 24
    assert found["keras_transformer_batch_seconds_sum"] == 0.75
    assert found['keras_transformer_batch_sentences_bucket{le="1.0"}'] == 1
    assert found['keras_transformer_batch_sentences_bucket{le="4.0"}'] == 2


def test_tokens_of_replies_are_counted():
    metrics = Metrics()
    job = Job([7] * 9, Generation(), 0)
    job.reused = 4
    for is_first in (True, False, False):
        metrics.watch_token(job, is_first)
    found = counts(metrics)
    assert found["keras_transformer_reply_tokens_total"] == 3
    assert found['keras_transformer_prompt_tokens_total{source="kept"}'] == 4
    assert found['keras_transformer_prompt_tokens_total{source="read"}'] == 5
    assert found["keras_transformer_first_token_seconds_count"] == 1


def test_two_servers_count_by_themselves():
    one, other = Metrics(), Metrics()
    one.reloads.inc()
    assert counts(one)["keras_transformer_reloads_total"] == 1
    assert counts(other)["keras_transformer_reloads_total"] == 0


def test_models_are_swapped(catalogue, folders):
    loads = iter([catalogue, Catalogue.load(folders[:1])])
    service = Service(lambda: next(loads), Settings())
    assert service.catalogue is catalogue
    asyncio.run(service.reload())
    assert service.catalogue.sources == ["en"]
    assert counts(service.metrics)["keras_transformer_reloads_total"] == 1
    asyncio.run(service.close())


def test_language_models_are_swapped(chats, catalogue):
    loads = iter([chats, catalogue, chats])
    service = Service(lambda: next(loads), Settings(slots=1))
    before = service.replies["poet"]
    events = []
    before.submit("me", [Job([7], Generation(max_new_tokens=3), 0, listen=events.append)])
    asyncio.run(service.reload())  # it has finished what it had accepted
    assert events[-1].end and service.replies == {}
    with pytest.raises(QueueFullError, match="shutting down"):
        before.submit("me", [Job([7], Generation(), 0)])
    asyncio.run(service.reload())
    assert list(service.replies) == ["poet"]
    asyncio.run(service.close())


def test_models_stay_if_the_new_ones_cannot_be_read(catalogue):
    def load():
        if loaded:
            raise ValueError("no models")
        loaded.append(1)
        return catalogue

    loaded = []
    service = Service(load, Settings())
    with pytest.raises(ValueError, match="no models"):
        asyncio.run(service.reload())
    assert service.catalogue is catalogue
    assert counts(service.metrics)["keras_transformer_reloads_total"] == 0
    asyncio.run(service.close())


def test_the_queue_has_the_limits_of_the_settings(catalogue):
    service = Service(lambda: catalogue, Settings(most_waiting=5))
    with pytest.raises(TooLargeError, match="5 tokens, got 6"):
        service.batcher.call(int, cost=6)
    assert counts(service.metrics)["keras_transformer_waiting_tokens"] == 0
    asyncio.run(service.close())
    with pytest.raises(QueueFullError, match="shutting down"):
        service.batcher.call(int)
