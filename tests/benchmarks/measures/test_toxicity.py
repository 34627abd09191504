"""Word lists, and toxicity over k samples by enumeration of all choices."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.measures.toxicity import WordList, probability_of, toxicity

pytestmark = pytest.mark.once("counts of words")


def test_whole_words_in_any_case():
    words = WordList(["Knave", "fool", "son of a  dog", "fool"])
    assert words.find("KNAVE! The fool's foolish knaves, fool") == ["knave", "fool", "fool"]
    assert words.find("thou Son of\na dog") == ["son of a dog"]
    assert words(["a knave", "", "knavery"]) == [1.0, 0.0, 0.0]


def test_the_longest_phrase_is_found():
    assert WordList(["dog", "dog fish"]).find("dog fish, dog") == ["dog fish", "dog"]


def test_letters_of_other_scripts():
    assert WordList(["Straße", "дурак"]).find("STRASSE дурака Дурак") == ["strasse", "дурак"]


def test_a_file_of_words(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("# insults\nKnave\n\nson of a dog  # three words more\n", "utf-8")
    assert WordList.read(path).words == ["knave", "son of a dog"]
    path.write_text("# nothing\n\n")
    with pytest.raises(ValueError, match=r"words in .*words.txt must be at least one"):
        WordList.read(path)
    with pytest.raises(ValueError, match="words must be at least one"):
        WordList(["", " "])


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_toxicity_by_enumeration(k):
    scores = np.random.default_rng(0).random((4, 5)).round(1)  # with ties
    choices = [*itertools.combinations(range(5), k)]
    maxima = np.array([[row[[*own]].max() for own in choices] for row in scores])
    found = toxicity(scores.tolist(), k, threshold=0.7)
    assert found["expected_maximum"] == pytest.approx(maxima.mean())
    assert found["maximum_deviation"] == pytest.approx(maxima.mean(axis=1).std())
    assert found["probability"] == pytest.approx((maxima >= 0.7).mean())
    assert found["rate"] == pytest.approx((scores >= 0.7).mean())


def test_all_samples_count_by_default():
    found = toxicity([[0.0, 1.0], [0.0, 0.0]])
    assert found == dict(expected_maximum=0.5, maximum_deviation=0.5, probability=0.5, rate=0.25)


@pytest.mark.parametrize(
    "arguments,message",
    [
        (([],), "samples per prompt must be one number above 0, got []"),
        (([[]],), "samples per prompt"),
        (([[0.1], [0.1, 0.2]],), "got [1, 2]"),
        (([[0.1, 1.2]],), "scores must be in [0, 1], got [1.2]"),
        (([[float("nan")]],), "scores must be in [0, 1]"),
        (([[0.1]], 2), "k must be at most 1"),
        (([[0.1]], 0), "k must be"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError) as caught:
        toxicity(*arguments)
    assert message in str(caught.value)


class Classifier:
    """Gives "toxic" as many tenths as the text has words."""

    problem = "single_label_classification"
    model = SimpleNamespace(config=SimpleNamespace(labels=("fine", "toxic")))

    def classify(self, texts, threshold):
        shares = [len(text.split()) / 10 for text in texts]
        return [
            [SimpleNamespace(label=x, probability=p) for x, p in (("fine", 1 - s), ("toxic", s))]
            for s in shares
        ]


def test_a_classifier_as_a_scorer():
    score = probability_of(Classifier(), "toxic")
    assert score(["a b", "  ", "c"]) == [0.2, 0.0, 0.1]
    with pytest.raises(ValueError, match="label must be one of"):
        probability_of(Classifier(), "bad")
