"""Requests that are complete, and those with wrong fields."""

import pytest
from pydantic import ValidationError

from keras_transformer.saved.kinds import KINDS
from keras_transformer.serving.errors import Refusal
from keras_transformer.serving.task_schemas import (
    EmbeddingsRequest,
    TranscriptionForm,
    request_of,
    usage_of,
)

pytestmark = pytest.mark.once("no tensor")
REQUESTS = {kind.command: request_of(kind) for kind in KINDS if kind.use}
ClassifyRequest, FillRequest = REQUESTS["classify"], REQUESTS["fill"]
AnswerRequest = REQUESTS["answer"]


def test_accepted():
    assert ClassifyRequest(texts=["a"]).texts == ["a"]
    assert ClassifyRequest(texts=[["a", "b"]]).texts == [("a", "b")]
    assert EmbeddingsRequest(model="m", input="a").encoding_format == "float"
    assert TranscriptionForm(model="m", temperature="0").response_format == "json"
    assert usage_of(3) == {"prompt_tokens": 3, "total_tokens": 3}


def test_refused():
    for schema, values in (
        (ClassifyRequest, dict(texts=["a", ["b", "c"]])),
        (ClassifyRequest, dict(texts=[["a", "b", "c"]])),
        (AnswerRequest, dict(questions=[dict(question="", passage="a")])),
        (ClassifyRequest, dict(texts=["a"], threshold=1.5)),
        (ClassifyRequest, dict(texts=["a"], threshold="0.5")),
        (FillRequest, dict(texts=["a"], top_k=0)),
        (FillRequest, dict(texts=["a"], top_k=101)),
        (FillRequest, dict(texts=["a"], top_k=1.0)),
        (AnswerRequest, dict(questions=[dict(question="a", passage="a")], stride=1)),
        (AnswerRequest, dict(questions=[dict(question="a", passage="a")], min_score=float("nan"))),
        (EmbeddingsRequest, dict(model="m", input=[])),
        (EmbeddingsRequest, dict(model="m", input=[1, 2])),
        (EmbeddingsRequest, dict(model="m", input="a", encoding_format="hex")),
        (TranscriptionForm, dict(model="m", prompt="Names: Ann")),
        (TranscriptionForm, dict(model="m", temperature=1)),
    ):
        with pytest.raises(ValidationError):
            schema(**values)


def test_too_many_results():
    question = dict(question="a", passage="a")
    FillRequest(texts=["a"] * 100, top_k=100)
    for schema, values, name in (
        (FillRequest, dict(texts=["a"] * 101, top_k=100), "texts times top_k"),
        (AnswerRequest, dict(questions=[question] * 101, top_k=100), "questions times top_k"),
    ):
        with pytest.raises(Refusal) as caught:
            schema(**values)
        assert caught.value.detail == f"{name} must be at most 10,000, got 101 times 100"
