"""Errors in the form of the API that was asked."""

import pytest
from pydantic import BaseModel, ValidationError

from keras_transformer.serving.errors import Refusal, error_body, place_of, said


def test_two_forms():
    ours = {"path": "/translate"}
    assert error_body(ours, 400, "no") == {"error": "no"}
    theirs = {"path": "/prefix/v1/completions", "root_path": "/prefix"}
    assert error_body(theirs, 400, "no", "prompt") == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "prompt", "code": None}
    }
    assert error_body(theirs, 503, "no")["error"]["type"] == "server_error"
    assert error_body(theirs, 429, "no")["error"]["code"] == "rate_limit_exceeded"
    missing = error_body({"path": "/v1/models/x"}, 404, "no", "model", "model_not_found")
    assert missing["error"]["code"] == "model_not_found"


def test_the_place_of_an_error():
    class Inner(BaseModel):
        role: str

    class Outer(BaseModel):
        messages: list[Inner] = []
        stop: str | list[str] = ""

    for values, place, words in (
        ({"messages": [{"role": "a"}, {"role": 3}]}, "messages[1].role", "messages: "),
        ({"stop": 3}, "stop", "stop: "),
        ([], None, "body: "),
    ):
        with pytest.raises(ValidationError) as caught:
            Outer.model_validate(values)
        errors = caught.value.errors()
        assert place_of(errors) == place and said(errors).startswith(words)


def test_a_refusal_keeps_what_it_names():
    error = Refusal(404, "no such model", "model", "model_not_found")
    assert (error.status_code, error.detail) == (404, "no such model")
    assert (error.param, error.code) == ("model", "model_not_found")
