"""Paired tests: equal systems, clearly different ones, and sacreBLEU's own scores."""

import math

import numpy as np
import pytest
import sacrebleu

from keras_transformer.evaluation.significance import TESTS, compare, compare_scores, intervals

pytestmark = pytest.mark.once("texts: no tensor is read")

REFERENCES = [f"the {i} dogs run over the green field number {i * i}" for i in range(40)]
WORSE = [x.replace("dogs run", "dog walk") for x in REFERENCES]
OTHER = [x.replace("the", "a", 1) if i % 2 else x for i, x in enumerate(REFERENCES)]
SAME = [x if i % 2 else x.replace("the", "a", 1) for i, x in enumerate(REFERENCES)]


@pytest.mark.parametrize("test", TESTS)
def test_better_and_equal_systems(test):
    found = compare({"worse": WORSE, "best": REFERENCES}, REFERENCES, test=test, samples=200)
    assert list(found) == ["worse", "best"]
    for metric, theirs in (("BLEU", sacrebleu.BLEU()), ("chrF", sacrebleu.CHRF())):
        expected = theirs.corpus_score(WORSE, [REFERENCES]).score
        assert found["worse"][metric].score == pytest.approx(expected)
        assert found["worse"][metric].p_value is None
        assert found["best"][metric].score == pytest.approx(100)
        assert found["best"][metric].p_value < 0.01
        assert (found["worse"][metric].interval is not None) == (test == "bootstrap")
    found = compare({"one": OTHER, "other": SAME}, REFERENCES, test=test, samples=200)
    assert found["other"]["BLEU"].p_value > 0.2
    again = compare({"one": OTHER, "other": SAME}, REFERENCES, test=test, samples=200)
    assert again == found


def test_bad_input():
    for systems, options, said in (
        ({"one": OTHER}, {}, "systems must be two or more, got .'one'."),
        (
            {"one": OTHER, "two": SAME[1:]},
            {},
            "two must be 40 texts, one per reference, got '39 te",
        ),
        ({"one": OTHER, "two": SAME}, dict(test="t"), "test must be one of .*, got 't'"),
        ({"one": OTHER, "two": SAME}, dict(samples=0), "samples must be a whole number of at leas"),
    ):
        with pytest.raises(ValueError, match=said):
            compare(systems, REFERENCES, **options)
    with pytest.raises(ValueError, match="references must be one or more"):
        compare({"one": [], "two": []}, [])


def test_intervals_are_those_of_the_comparison():
    found = intervals(OTHER, REFERENCES)
    compared = compare({"one": OTHER, "two": SAME}, REFERENCES)["one"]
    expected = {name: round(one.interval, 2) for name, one in compared.items()}
    assert found == pytest.approx(expected, abs=0.006)
    assert found["BLEU"] > 0
    assert intervals(["x"] * 3, ["y"] * 3) == {"BLEU": 0, "chrF": 0}
    for texts, options in ((OTHER[1:], {}), ([], {}), (OTHER, {"samples": 0})):
        with pytest.raises(ValueError, match="must be"):
            intervals(texts, REFERENCES, **options)


@pytest.mark.parametrize("test", TESTS)
def test_means_of_scores(test):
    """With many texts, intervals and p-values are those of the normal distribution."""
    random = np.random.default_rng(0)
    one = random.normal(size=400)
    two = one + random.normal(0.05, 0.5, size=400)
    scores = compare_scores({"one": one, "two": two}, test=test)
    difference = two - one
    z = difference.mean() / difference.std() * 20
    assert scores["two"].p_value == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), abs=0.04)
    assert scores["one"].p_value is None and scores["one"].score == pytest.approx(one.mean())
    interval = scores["one"].interval
    if test == "bootstrap":
        assert interval == pytest.approx(1.96 * one.std() / 20, rel=0.1)
    else:
        assert interval is None


def test_bad_scores():
    for scores, options, said in (
        ({"one": [1.0]}, {}, "systems must be two or more"),
        ({"one": [1.0], "two": []}, {}, "two must be 1, 1 or more, got '0 scores'"),
        ({"one": [1.0], "two": [1.0]}, dict(test="t"), "test must be one of"),
        ({"one": [1.0], "two": [1.0]}, dict(samples=0), "samples must be a whole number"),
    ):
        with pytest.raises(ValueError, match=said):
            compare_scores(scores, **options)
