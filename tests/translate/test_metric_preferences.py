"""Preferences of a metric: the best and the worst of several translations."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_transformer.data.preferences import Preference
from keras_transformer.translate.metric_preferences import metric_preferences

pytestmark = pytest.mark.once("translations and scores are made up")


class Translator:
    """Translates a text to itself; the sample of a seed has as many exclamation marks."""

    def translate(self, texts, tokens_per_batch):
        return [*texts]

    def sample(self, texts, seed, tokens_per_batch, **options):
        assert options == {"temperature": 0.5}
        return [text and text + "!" * (0 if text == "same" else seed) for text in texts]


def metric(sign=1, needs_reference=False):
    """Likes length, or brevity if `sign` is -1; remembers what it compares with."""
    seen = []

    def score(sources, translations, references):
        seen.append(references)
        assert all(y.startswith((x, "?")) for x, y in zip(sources, translations, strict=True))
        return np.array([len(x) for x in translations], "float32")

    return SimpleNamespace(sign=sign, needs_reference=needs_reference, score=score, seen=seen)


def found(judge, texts=("a", "", "same", "bc"), references=None, **options):
    options = dict(candidates=3, temperature=0.5) | options
    return [*metric_preferences(Translator(), judge, texts, references, **options)]


def test_best_and_worst():
    expected = [Preference("a", "a!!", "a"), Preference("bc", "bc!!", "bc")]
    assert found(metric()) == expected
    swapped = [Preference(x.prompt, x.rejected, x.chosen) for x in expected]
    assert found(metric(sign=-1)) == swapped
    assert found(metric(), min_difference=2.5) == []
    assert found(metric(), seed=4)[0].chosen == "a" + "!" * 6


def test_references_are_judged_unless_they_judge():
    references = ["?" * 9, "?", "same", "?"]
    first, last = found(judge := metric(), references=references)
    assert first == Preference("a", "?" * 9, "a") and last == Preference("bc", "bc!!", "?")
    assert judge.seen == [["?" * 9] * 4 + ["?"] + ["same"] + ["?"] * 4]
    assert found(metric(needs_reference=True), references=references) == found(metric())


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(candidates=1), "candidates must be a whole number of at least 2"),
        (dict(min_difference=-1), "min_difference must be at least 0"),
        (dict(references=["x"]), "must have"),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        found(metric(), **options)
