"""The state of a server: models that are swapped."""

import asyncio
import gc
import weakref

import pytest

from keras_transformer.search import Generation
from keras_transformer.serving import Catalogue, Settings
from keras_transformer.serving.replies import ReplyJob
from keras_transformer.serving.service import Service
from keras_transformer.serving.waiting import QueueFullError, TooLargeError
from tests.serving.test_monitoring import counts


def test_models_are_swapped(catalogue, folders):
    loads = iter([catalogue, Catalogue.load(folders[:1])])
    service = Service(lambda: next(loads), Settings())
    assert service.catalogue is catalogue
    asyncio.run(service.reload())
    assert service.catalogue.sources == ["en"]
    assert counts(service.metrics)["keras_transformer_reloads_total"] == 1
    asyncio.run(service.close())


def test_models_that_were_swapped_are_freed(folders):
    service = Service(lambda: Catalogue.load(folders[:1]), Settings())
    model = service.catalogue.models["en-de"].any.handler(("en", "de")).translator.model
    old = weakref.ref(model)
    del model
    gc.disable()
    try:
        asyncio.run(service.reload())
        assert old() is None
    finally:
        gc.enable()
    asyncio.run(service.close())


def test_language_models_are_swapped(chats, catalogue):
    loads = iter([chats, catalogue, chats])
    service = Service(lambda: next(loads), Settings(slots=1))
    before = service.replies["poet"]
    events = []
    before.submit("me", [ReplyJob([7], Generation(max_new_tokens=3), 0, listen=events.append)])
    asyncio.run(service.reload())  # it has finished what it had accepted
    assert events[-1].end and service.replies == {}
    with pytest.raises(QueueFullError, match="shutting down"):
        before.submit("me", [ReplyJob([7], Generation(), 0)])
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
