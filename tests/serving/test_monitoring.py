"""What operators ask, and what is counted for Prometheus."""

import pytest
from fastapi.testclient import TestClient

from keras_transformer.search import Generation
from keras_transformer.serving import Settings, create_app
from keras_transformer.serving.monitoring import Metrics
from keras_transformer.serving.queue import Batch
from keras_transformer.serving.replies import ReplyJob

pytestmark = pytest.mark.once("requests and answers: the translator alone knows tensors")


def counts(metrics):
    """Return the values of all metrics by name."""
    lines = [x for x in metrics.text().decode().splitlines() if not x.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_batch_is_counted():
    metrics = Metrics()
    metrics.watch(Batch(3, 20, 0.5, [0.25, 0.75], "one", "2"))
    metrics.watch(Batch(1, 4, 0.25, [], "one", "2"))
    found = counts(metrics)
    assert found['keras_transformer_sentences_total{model="one",version="2"}'] == 4
    assert found['keras_transformer_source_tokens_total{model="one",version="2"}'] == 24
    assert found["keras_transformer_queue_seconds_count"] == 2
    assert found["keras_transformer_queue_seconds_sum"] == 1
    assert found['keras_transformer_batch_seconds_sum{model="one",version="2"}'] == 0.75
    assert found['keras_transformer_batch_sentences_bucket{le="1.0"}'] == 1
    assert found['keras_transformer_batch_sentences_bucket{le="4.0"}'] == 2


def test_tokens_of_replies_are_counted():
    metrics = Metrics()
    job = ReplyJob([7] * 9, Generation(), 0)
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


def test_requests_are_counted_by_key_model_and_refusal(catalogue, translated, refused):
    settings = Settings(api_key="x", requests_per_minute=3, most_waiting=20)
    with TestClient(create_app(lambda: catalogue, settings)) as client:
        translated(client, q="one two", api_key="x")
        refused(client, 413, q="one " * 30, api_key="x")
        refused(client, 403, q="one")
        refused(client, 429, q="one", api_key="x")
        found = counts(client.app.state.service.metrics)
        assert found["keras_transformer_requests_in_flight"] == 0
    assert found['keras_transformer_key_requests_total{key="default"}'] == 2
    assert found['keras_transformer_refusals_total{reason="address"}'] == 1
    assert found['keras_transformer_sentences_total{model="en-de",version="1"}'] == 1
    assert found["keras_transformer_queue_seconds_count"] == 1
