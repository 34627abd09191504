"""Which language a text is in."""

from keras_transformer.serving.detection import Detector


def test_the_likely_languages_best_first():
    best, *others = Detector(["de", "en", "fr"]).detect("Guten Morgen, mein Freund.")
    assert best["language"] == "de" and 50 < best["confidence"] <= 100
    assert all(1 <= x["confidence"] <= best["confidence"] for x in others)


def test_only_languages_that_are_served():
    (found,) = Detector(["xx", "fr"]).detect("Guten Morgen, mein Freund.")
    assert found["language"] == "fr" and found["confidence"] < 10  # it is not French
    assert Detector(["xx"]).detect("Guten Morgen, mein Freund.")[0]["language"] == "de"
