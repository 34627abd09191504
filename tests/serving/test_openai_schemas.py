"""Requests that OpenAI's API accepts, and those that it refuses."""

from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from keras_transformer.search import GENERATE, Generation
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.openai_schemas import ChatRequest, CompletionRequest

HELLO = [{"role": "user", "content": "Hello"}]


def chat(**fields):
    return ChatRequest.model_validate({"model": "m", "messages": HELLO, **fields})


def test_defaults_are_openais():
    own = SimpleNamespace(search={}, options=lambda given: Generation.of(given, GENERATE))
    asked = chat()
    search = asked.search_of(20, own)
    assert (search.temperature, search.top_p, search.max_new_tokens) == (1.0, 1.0, 20)
    assert asked.stops() == [] and asked.n == 1 and not asked.stream
    assert CompletionRequest(model="m", prompt="a").max_tokens == 16
    assert chat(temperature=0).search_of(3, own).temperature is None
    assert chat(temperature=0.5, top_p=0).search_of(3, own).top_p > 0


def test_what_changes_nothing_is_accepted():
    asked = chat(
        tools=None, presence_penalty=0, response_format={"type": "text"}, stop=None, n=None,
        logit_bias={}, user="me", metadata={"a": "b"}, store=False, stream=None,
    )  # fmt: skip
    assert asked.n == 1


@pytest.mark.parametrize(
    "fields,param,message",
    [
        (dict(tools=[{"type": "function"}]), "tools", "tools is not supported"),
        (dict(presence_penalty=0.5), "presence_penalty", "accepts 0 only"),
        (dict(response_format={"type": "json_object"}), "response_format", "not supported"),
        (dict(echo=True), "echo", "not supported"),
        (dict(top_k=5), "top_k", "Unrecognized request argument supplied: top_k"),
        (dict(stream_options={}), "stream_options", "only when stream is true"),
        (dict(top_logprobs=3), "top_logprobs", "needs logprobs"),
        (dict(max_tokens=3, max_completion_tokens=3), "max_tokens", "cannot both be given"),
        (
            dict(messages=[*HELLO, {"role": "user", "content": "x", "tool_calls": [1]}]),
            "messages.tool_calls",
            "not supported",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(fields, param, message):
    with pytest.raises(Refusal) as caught:
        chat(**fields)
    assert caught.value.param == param and message in caught.value.detail
    assert caught.value.status_code == 400


@pytest.mark.parametrize(
    "fields",
    [
        dict(temperature=2.1), dict(temperature="1"), dict(top_p=1.5), dict(n=0), dict(n=True),
        dict(stop=["a"] * 5), dict(stop="a" * 257), dict(stop=["a" * 257]),
        dict(stop=""), dict(metadata={str(i): "" for i in range(17)}),
        dict(seed=1.5), dict(seed=2**63), dict(stream="yes"),
        dict(max_tokens=0), dict(logprobs=2), dict(logprobs=True, top_logprobs=21),
        dict(messages=[]), dict(messages="Hello"), dict(messages=[{"role": "user"}]),
        dict(messages=[{"role": "king", "content": "x"}]),
        dict(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
        dict(model=None), dict(messages=[{"role": "user", "content": "x", "age": 3}]),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_openai_refuses(fields):
    with pytest.raises(ValidationError):
        chat(**fields)


def test_messages_in_plain_form():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": parts, "name": "Eve"},
        {"role": "assistant", "content": "c", "refusal": None, "tool_calls": None},
    ]
    assert [message.plain() for message in chat(messages=messages).messages] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "ab", "name": "Eve"},
        {"role": "assistant", "content": "c"},
    ]


def test_forms_of_prompts():
    for prompt, expected in (
        ("a", ["a"]),
        (["a", "b"], ["a", "b"]),
        ([1, 2], [[1, 2]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([], []),
    ):
        asked = CompletionRequest.model_validate({"model": "m", "prompt": prompt})
        assert asked.prompts() == expected
    with pytest.raises(ValidationError):
        CompletionRequest.model_validate({"model": "m", "prompt": [1, "a"]})
    with pytest.raises(ValidationError):
        CompletionRequest.model_validate({"model": "m", "prompt": "a", "logprobs": 6})
