"""Rows and columns of TensorFlow Serving's API."""

import pytest

from keras_transformer.serving.predict_forms import answer_of, columns_of
from keras_transformer.serving.schemas import PredictRequest

pytestmark = pytest.mark.once("JSON: no tensor is read")


def columns(**fields):
    return columns_of(PredictRequest(**fields))


def test_rows_and_columns():
    for given in ({"instances": ["a"]}, {"instances": [{"texts": "a"}]}, {"inputs": "a"}):
        assert columns(**given) == [["a"]]
    for given in ({"inputs": ["a", "b"]}, {"inputs": {"texts": ["a", {"b64": "Yg=="}]}}):
        assert columns(**given) == [["a", "b"]]
    pair = {"sources": "a", "targets": "b"}
    for given in ({"instances": [pair]}, {"inputs": pair}):
        assert columns(signature_name="score", **given) == [["a"], ["b"]]
    assert columns(instances=[]) == [[]]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({}, "give either `instances` or `inputs`"),
        ({"instances": ["a"], "inputs": "a"}, "not both and not neither"),
        ({"instances": [3]}, "texts must be texts"),
        ({"instances": [{"text": "a"}]}, "instances must be texts, got"),
        ({"inputs": {"b64": "!"}}, "texts must be UTF-8 in base64"),
        ({"inputs": {"b64": "/w=="}}, "texts must be UTF-8 in base64"),
        ({"signature_name": "score", "inputs": "a"}, "inputs must be objects with sources and"),
        (
            {"signature_name": "score", "inputs": {"sources": ["a"], "targets": []}},
            "sources and targets must be as many of each",
        ),
        ({"inputs": ["a"] * 10_001}, "texts must be at most 10,000 texts, got 10001"),
        ({"inputs": "\ud800"}, "surrogates not allowed"),
    ],
)
def test_bad_forms(fields, message):
    with pytest.raises(ValueError, match=message):
        columns(**fields)


def test_answers():
    rows, inputs = PredictRequest(instances=["a"]), PredictRequest(inputs="a")
    assert answer_of(rows, {"x": [1]}) == {"predictions": [1]}
    assert answer_of(inputs, {"x": [1]}) == {"outputs": [1]}
    assert answer_of(rows, {"x": [1], "y": [2]}) == {"predictions": [{"x": 1, "y": 2}]}
    assert answer_of(inputs, {"x": [1], "y": [2]}) == {"outputs": {"x": [1], "y": [2]}}
