"""Entities, brackets and answers: by hand, and by what two systems are known to have scored."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from keras_transformer.evaluation.spans import answer_scores, bracket_f1, span_f1


def test_spans_by_hand():
    expected = [["B-a", "I-a", "O", "B-b"], ["O", "B-a"]]
    found = [["B-a", "I-a", "O", "B-a"], ["O", "O"]]
    scores = span_f1(found, expected)  # one of two found is right, of three that there are
    assert scores == pytest.approx(dict(precision=1 / 2, recall=1 / 3, f1=2 / 5))
    assert span_f1(expected, expected)["f1"] == 1.0
    assert span_f1([["O"]], [["O"]])["f1"] == 0.0


def test_brackets_by_hand():
    """A span that is there twice counts once where it is expected once."""
    expected = [[("S", 0, 3), ("NP", 0, 2), ("VP", 2, 3)], [("NP", 0, 1), ("NP", 0, 1)]]
    found = [[("S", 0, 3), ("NP", 0, 1), ("S", 0, 3)], [("NP", 0, 1), ("NP", 0, 1)]]
    scores = bracket_f1(found, expected)
    by_hand = dict(precision=60.0, recall=60.0, f1=60.0, exact_match=50.0)
    assert scores == pytest.approx(by_hand)
    assert bracket_f1([[], found[1]], expected)["precision"] == 100.0
    assert bracket_f1([[]], expected[:1])["f1"] == 0.0


def test_answers_by_hand():
    expected = {"1": ["The Normans", "Norse"], "2": [], "3": ["in 10 years"], "4": ["x"]}
    found = {"1": "normans!", "2": "", "3": "about 10 years"}
    scores = answer_scores(found, expected)
    assert scores["exact_match"] == pytest.approx(50.0)
    assert scores["f1"] == pytest.approx((100 + 100 + 200 / 3 + 0) / 4)


@pytest.mark.once("no tensor")
@pytest.mark.skipif("KT_DATA" not in os.environ, reason="KT_DATA is not set")
@pytest.mark.parametrize(
    "system,exact_match,f1",
    [("bert-ensemble", 86.21, 92.20), ("logistic-regression", 40.14, 50.98)],
)
def test_what_two_systems_are_known_to_score(system, exact_match, f1):
    folder = Path(os.environ["KT_DATA"]) / "squad"

    def read(name):
        return json.loads(gzip.decompress((folder / name).read_bytes()))

    expected = {
        question["id"]: [answer["text"] for answer in question["answers"]]
        for article in read("dev-v1.1.reconstructed.json.gz")["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }
    scores = answer_scores(read(f"predictions-v1.1.{system}.json.gz"), expected)
    assert scores["exact_match"] == pytest.approx(exact_match, abs=0.006)
    assert scores["f1"] == pytest.approx(f1, abs=0.006)


def test_bad_input(monkeypatch):
    with pytest.raises(ValueError, match="must have the same number of sentences"):
        span_f1([["O"]], [["O", "O"]])
    with pytest.raises(ValueError, match="found and expected must have the same length"):
        bracket_f1([[]], [])
    with pytest.raises(ValueError, match="expected must have at least one question, got none"):
        answer_scores({}, {})
    monkeypatch.setitem(sys.modules, "seqeval", None)
    with pytest.raises(ImportError, match='pip install "seqeval>='):
        span_f1([["O"]], [["O"]])
