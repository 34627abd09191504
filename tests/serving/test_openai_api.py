"""OpenAI's client, as it is installed, on our server."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import keras
import numpy as np
import openai
import pytest
from fastapi.testclient import TestClient

from keras_transformer.language.chat import Chat
from keras_transformer.serving import Catalogue, Settings, create_app

CHAT = [{"role": "user", "content": "one two"}]
LONGER = [*CHAT, {"role": "assistant", "content": "three"}, {"role": "user", "content": "four"}]


@pytest.fixture(scope="module")
def url(served, writer_folder, folders):
    catalogue = Catalogue.load([folders[0], writer_folder])
    with served(create_app(lambda: catalogue, Settings(most_characters=500, slots=4))) as address:
        yield address


@pytest.fixture(scope="module")
def client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def ask(client, messages=CHAT, **options):
    return client.chat.completions.create(model="poet", messages=messages, **options)


def metric(url, name):
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return float(next(x for x in lines if x.startswith(f"keras_transformer_{name} ")).split()[1])


def test_models(client, url):
    assert [model.id for model in client.models.list()] == ["poet"]
    assert client.models.retrieve("poet").owned_by == "keras_transformer"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nobody")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="en-de is a translator: use /translate"):
        client.chat.completions.create(model="en-de", messages=CHAT)
    # The path is also one of TensorFlow Serving's API, for translators.
    assert "model_version_status" in httpx.get(f"{url}/v1/models/en-de").json()


def test_a_chat_is_what_it_is_in_python(client, writer):
    chat = Chat(writer)
    for messages in (CHAT, LONGER):
        for options, own in (
            (dict(temperature=0), dict()),
            (dict(seed=3), dict(seed=3, temperature=1.0)),
            (dict(seed=4, temperature=0.7, top_p=0.9), dict(seed=4, temperature=0.7, top_p=0.9)),
        ):
            expected = chat.reply(messages, max_new_tokens=20, **own)
            answer = ask(client, messages, max_completion_tokens=20, **options)
            assert answer.choices[0].message.content == expected
            assert answer.choices[0].message.role == "assistant"
            stream = ask(client, messages, max_tokens=20, stream=True, **options)
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
            assert "".join(pieces) == expected
            assert len(expected) < 9 or len([x for x in pieces if x]) > 1


def test_a_completion_is_what_it_is_in_python(client, writer):
    expected = writer.generate(["one two", "six"], max_new_tokens=16, temperature=1.0, seed=5)
    options = dict(model="poet", prompt=["one two", "six"], seed=5)
    answer = client.completions.create(**options)
    assert [choice.text for choice in answer.choices] == expected
    assert [choice.index for choice in answer.choices] == [0, 1]
    texts = ["", ""]
    for chunk in client.completions.create(stream=True, **options):
        (choice,) = chunk.choices
        texts[choice.index] += choice.text
    assert texts == expected
    ids = writer.tokenizer.encode(["one two"])[0]
    of_ids = client.completions.create(model="poet", prompt=ids, seed=5)
    assert of_ids.choices[0].text == expected[0]


def test_32_chats_at_once_are_each_what_it_is_alone(client, writer):
    chat = Chat(writer)
    asked = [
        ([{"role": "user", "content": " ".join(["one", "two", "six"] * (1 + i % 5)) + str(i)}], i)
        for i in range(32)
    ]

    def reply(messages, seed):
        answer = ask(client, messages, seed=seed, max_tokens=24, temperature=0.8)
        return answer.choices[0].message.content

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(reply, *zip(*asked, strict=True)))
    for (messages, seed), text in zip(asked, found, strict=True):
        assert text == chat.reply(messages, seed=seed, max_new_tokens=24, temperature=0.8)
    assert len(set(found)) > 16


def test_several_replies_stops_and_usage(client, writer):
    answer = ask(client, n=3, seed=7, max_tokens=12)
    texts = [choice.message.content for choice in answer.choices]
    expected = [Chat(writer).reply(CHAT, seed=7, max_new_tokens=12, temperature=1.0)]
    assert texts[:1] == expected and len(set(texts)) == 3
    (prompt,) = (len(Chat(writer).encode(CHAT)),)
    assert answer.usage.prompt_tokens == prompt
    assert answer.usage.completion_tokens <= 36
    assert answer.usage.prompt_tokens_details.cached_tokens > 0
    mark = texts[0][4:6]
    stopped = ask(client, seed=7, max_tokens=12, stop=[mark, "nowhere"]).choices[0]
    assert stopped.message.content == texts[0][: texts[0].index(mark)]
    assert stopped.finish_reason == "stop"
    *chunks, last = ask(
        client, seed=7, max_tokens=5, stream=True, stream_options={"include_usage": True}
    )
    assert last.choices == [] and last.usage.completion_tokens <= 5
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason in ("length", "stop")


def test_log_probabilities(client, writer):
    options = dict(seed=1, max_tokens=6, logprobs=True, top_logprobs=2)
    content = ask(client, **options).choices[0].logprobs.content
    assert len(content) == 6
    prompt = Chat(writer).encode(CHAT)
    logits = writer.model({"token_ids": np.array([prompt], "int32")})
    logits = keras.ops.convert_to_numpy(logits)[0, -1]
    log_probs = logits - np.log(np.exp(logits).sum())
    best = np.sort(log_probs)[::-1][:2]
    np.testing.assert_allclose([x.logprob for x in content[0].top_logprobs], best, atol=1e-3)
    streamed = [
        one.logprob
        for chunk in ask(client, stream=True, **options)
        if chunk.choices[0].logprobs
        for one in chunk.choices[0].logprobs.content
    ]
    np.testing.assert_allclose(streamed, [x.logprob for x in content], atol=1e-4)
    own = client.completions.create(model="poet", prompt="one", logprobs=2, max_tokens=3, seed=1)
    assert len(own.choices[0].logprobs.tokens) == len(own.choices[0].logprobs.text_offset) == 3


def test_refusals(client, url):
    for kind, options in (
        (openai.BadRequestError, dict(tools=[{"type": "function", "function": {"name": "f"}}])),
        (openai.BadRequestError, dict(temperature=3)),
        (openai.BadRequestError, dict(extra_body={"top_k": 3})),
        (openai.BadRequestError, dict(messages=[{"role": "assistant", "content": "one"}])),
        (openai.NotFoundError, dict(model="nobody")),
        (openai.BadRequestError, dict(model="en-de", messages=[])),
        (openai.APIStatusError, dict(messages=[{"role": "user", "content": "x" * 501}])),
    ):
        with pytest.raises(kind) as caught:
            client.chat.completions.create(**{"model": "poet", "messages": CHAT, **options})
        assert caught.value.body["message"] and caught.value.type == "invalid_request_error"
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, [{"role": "user", "content": "xyz " * 100}])
    assert "161" in str(caught.value) or "fewer than 160" in str(caught.value)
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="poet", prompt=[7] * 160)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="at most 1,024 replies, got 128 times 9") as n:
        client.completions.create(model="poet", prompt=["a"] * 9, n=128)
    assert n.value.param == "n"
    with pytest.raises(openai.BadRequestError, match="stop: .* at most 256 characters"):
        ask(client, stop="a" * 30_000)
    answer = httpx.post(f"{url}/v1/completions", content=b"{")
    assert answer.status_code == 400 and answer.json()["error"]["type"]


def test_who_leaves_frees_the_slot(client, url, writer):
    before = metric(url, "reply_tokens_total")
    for _ in range(6):  # more than there are slots
        stream = client.completions.create(
            model="poet", prompt="one", max_tokens=150, stream=True, temperature=2, seed=1
        )
        next(iter(stream))
        stream.close()
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.005).completions.create(
            model="poet", prompt=["six"] * 40, max_tokens=150
        )
    deadline = time.monotonic() + 30
    while metric(url, "slots") or metric(url, "waiting_tokens"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert metric(url, "reply_tokens_total") - before < 46 * 150
    assert metric(url, "first_token_seconds_count") > 0


def test_keys_and_limits(chats):
    app = create_app(lambda: chats, Settings(api_key="secret", slots=1, most_waiting=60))
    with TestClient(app) as web:
        body = {"model": "poet", "prompt": "one", "max_tokens": 2}
        answer = web.post("/v1/completions", json=body)
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert web.get("/v1/models").status_code == 401
        headers = {"Authorization": "Bearer secret"}
        assert web.get("/v1/models", headers=headers).status_code == 200
        assert web.post("/v1/completions", json=body, headers=headers).status_code == 200
        many = body | {"prompt": [[7] * 20] * 4}
        answer = web.post("/v1/completions", json=many, headers=headers)
        assert answer.status_code == 413 and "at most 60 tokens" in answer.text
        settings = web.get("/frontend/settings").json()
        assert settings["language"] is None
        assert settings["languageModels"] == [{"id": "poet", "chat": True}]
        assert web.get("/languages").json() == []


def test_a_full_queue(chats, monkeypatch):
    app = create_app(lambda: chats, Settings(slots=1, most_waiting=8))
    with TestClient(app) as web:
        replies = app.state.service.replies["poet"]
        monkeypatch.setattr(replies, "waiting", 7)
        body = {"model": "poet", "prompt": [7, 8], "stream": True}
        answer = web.post("/v1/completions", json=body)
        assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
        assert answer.json()["error"]["code"] == "rate_limit_exceeded"


def test_what_fails_in_a_stream_is_an_event(chats, monkeypatch):
    app = create_app(lambda: chats, Settings(slots=1))
    with TestClient(app, raise_server_exceptions=False) as web:
        replies = app.state.service.replies["poet"]

        def fail(slots):
            raise RuntimeError("no memory")

        monkeypatch.setattr(type(replies._slots), "turn", fail)
        body = {"model": "poet", "prompt": "one"}
        assert web.post("/v1/completions", json=body).status_code == 500
        answer = web.post("/v1/completions", json=body | {"stream": True})
        assert answer.status_code == 200 and '"type": "server_error"' in answer.text
        assert "[DONE]" not in answer.text


def test_a_stream_may_take_longer_than_an_answer(chats):
    """The time limit is for the parts of a stream."""
    app = create_app(lambda: chats, Settings(slots=1, timeout=0.4))
    with TestClient(app) as web:
        slots = app.state.service.replies["poet"]._slots
        turn = slots.turn
        slots.turn = lambda: [time.sleep(0.1), turn()][1]
        body = {"model": "poet", "prompt": "one", "max_tokens": 12, "temperature": 2, "seed": 1}
        answer = web.post("/v1/completions", json=body)
        assert answer.status_code == 504 and "0.4 seconds" in answer.json()["error"]["message"]
        answer = web.post("/v1/completions", json=body | {"stream": True, "logprobs": 0})
        assert answer.text.endswith("data: [DONE]\n\n") and answer.text.count("\n\n") > 8


def test_a_stopping_server_finishes_its_replies(served, chats):
    found = []

    def ask_for_all(url):
        body = {"model": "poet", "prompt": "one", "max_tokens": 100, "temperature": 2}
        with httpx.stream("POST", f"{url}/v1/completions", json=body | {"stream": True}) as answer:
            found.extend(answer.iter_lines())

    app = create_app(lambda: chats, Settings(slots=1))
    with served(app) as url:
        thread = threading.Thread(target=ask_for_all, args=(url,))
        thread.start()
        while not app.state.service.replies["poet"].running and thread.is_alive():
            time.sleep(0.001)
    thread.join()
    assert found[-2:] == ["data: [DONE]", ""]
