"""Bodies of requests: JSON and forms, and one line for what is wrong."""

import time

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from pydantic import ValidationError

from keras_transformer.saved.kinds import KINDS
from keras_transformer.serving.openai_schemas import ChatRequest, CompletionRequest
from keras_transformer.serving.schemas import (
    DetectRequest,
    PredictRequest,
    TranslateRequest,
    body_of,
    read,
    said,
)
from keras_transformer.serving.task_schemas import (
    EmbeddingsRequest,
    RerankRequest,
    request_of,
)

FIELDS = {"q": "one", "source": "en", "target": "de"}


@pytest.fixture(scope="module")
def client():
    """A server that answers with what it has read, of JSON or forms, or of JSON alone."""
    app = FastAPI()

    @app.post("/both")
    async def both(request: Request):
        return await read(request, TranslateRequest)

    @app.post("/json")
    async def json(request: Request):
        return await read(request, PredictRequest, forms=False)

    return TestClient(app)


def test_json_and_forms_are_read_alike(client):
    expected = {**FIELDS, "format": None, "alternatives": 0, "api_key": None}
    expected |= {"glossary": None, "style": None}
    assert client.post("/both", json={**FIELDS, "unknown": 1}).json() == expected
    assert client.post("/both", data=FIELDS).json() == expected
    files = {"unknown": ("a.txt", b"x")}  # which makes it multipart
    assert client.post("/both", data=FIELDS, files=files).json() == expected


def test_a_field_that_is_there_twice_is_a_list(client):
    assert client.post("/both", data={**FIELDS, "q": ["one", "two"]}).json()["q"] == ["one", "two"]
    assert client.post("/both", data={**FIELDS, "alternatives": "3"}).json()["alternatives"] == 3


def test_json_alone_whatever_the_content_type(client):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = client.post("/json", content=b'{"inputs": ["one"]}', headers=headers)
    assert answer.json()["inputs"] == ["one"]
    assert client.post("/json", data={"inputs": "one"}).status_code == 400


@pytest.mark.parametrize(
    "content,message",
    [
        (b"{", "the body must be JSON or a form"),
        (b"\xff", "the body must be JSON or a form"),
        (b"[" * 100_000, "the body must be JSON or a form"),
        (b"[1]", "body: "),
        (b"{}", "q: "),
        (b'{"q": "\\ud800", "source": "en", "target": "de"}', "half of a surrogate pair"),
    ],
    ids=["cut", "bytes", "deep", "list", "empty", "surrogate"],
)
def test_what_is_no_body(client, content, message):
    answer = client.post("/both", content=content)
    assert answer.status_code == 400 and message in answer.json()["detail"]


REQUESTS = {kind.command: request_of(kind) for kind in KINDS if kind.use}
WRONG = {
    "texts": (TranslateRequest, {**FIELDS, "q": [1] * 600_000}),
    "many texts": (TranslateRequest, {**FIELDS, "q": [""] * 400_000}),
    "ids": (CompletionRequest, {"model": "m", "prompt": [1] * 600_000}),
    "prompts": (CompletionRequest, {"model": "m", "prompt": [None] * 200_000}),
    "lists of ids": (CompletionRequest, {"model": "m", "prompt": [["a"] * 200_000]}),
    "messages": (ChatRequest, {"model": "m", "messages": [{}] * 400_000}),
    "parts": (ChatRequest, {"model": "m", "messages": [{"role": "user", "content": [1] * 10**5}]}),
    "stop texts": (CompletionRequest, {"model": "m", "prompt": "a", "stop": [1] * 400_000}),
    "metadata": (
        CompletionRequest,
        {"model": "m", "prompt": "a", "metadata": {str(i): 1 for i in range(100_000)}},
    ),
    "pairs": (REQUESTS["classify"], {"texts": [1] * 400_000}),
    "documents": (RerankRequest, {"query": "a", "documents": [1] * 400_000}),
    "inputs": (EmbeddingsRequest, {"model": "m", "input": [1] * 400_000}),
    "questions": (REQUESTS["answer"], {"questions": [{}] * 400_000}),
    "names": (REQUESTS["tag"], {"texts": ["a"], **{f"{i}": 1 for i in range(100_000)}}),
    "instances": (PredictRequest, {"instances": [1] * 400_000}),
}


@pytest.mark.parametrize("name", WRONG)
def test_many_wrong_items_are_refused_at_once(name):
    model, values = WRONG[name]
    app = FastAPI()

    @app.post("/")
    async def route(request: Request):
        begun = time.process_time()
        try:
            await read(request, model)
        finally:
            seconds.append(time.process_time() - begun)

    seconds = []
    for _ in range(3):  # other threads of the process count, too
        answer = TestClient(app).post("/", json=values)
        assert answer.status_code == 400 and len(answer.json()["detail"]) < 300
        if seconds[-1] < 0.5:
            break
    assert min(seconds) < 1.0  # 5 or 10 s if each is described


def error_of(model, **values):
    with pytest.raises(ValidationError) as raised:
        model.model_validate(values)
    return said(raised.value.errors())


def test_an_error_in_one_line():
    assert error_of(DetectRequest, q=7) == "q: Input should be a valid string, got 7"
    assert error_of(TranslateRequest, **FIELDS | {"source": ""}).startswith("source: ")
    line = error_of(TranslateRequest, **FIELDS | {"target": "ü\n" * 60})
    assert line.startswith("target: ") and line.isascii() and "\n" not in line
    shown = line.partition(", got ")[2]
    assert len(shown) == 80 and shown.endswith("...")


@pytest.mark.parametrize("value", ["one", ["one", "two"], {"texts": "one"}, {"texts": ["one"]}])
def test_the_forms_of_inputs(value):
    assert PredictRequest.model_validate({"inputs": value}).inputs == value


def test_the_documentation_of_a_body():
    (content,) = (body_of(TranslateRequest)["requestBody"][x] for x in ("content",))
    assert set(content) == {"application/json", "application/x-www-form-urlencoded"}
    schema = content["application/json"]["schema"]
    assert set(schema["required"]) == {"q", "source", "target"}
    content = body_of(PredictRequest, forms=False)["requestBody"]["content"]
    assert set(content) == {"application/json"}
