"""Signs of errors, each by examples on both sides of its line."""

import pytest

from keras_transformer.analysis.suspects import SIGNS, suspects

pytestmark = pytest.mark.once("texts: no tensor is read")

FINE = [("He sees 2 dogs near the old house.", "Er sieht 2 Hunde beim alten Haus.")] * 5


def signs(source, translation):
    found = suspects(*zip(*FINE, (source, translation), strict=True))
    assert found.keys() == SIGNS.keys()
    assert not {i for places in found.values() for i in places} & set(range(5))
    return {sign for sign, places in found.items() if places}


@pytest.mark.parametrize(
    "source, translation, expected",
    [
        ("the dogs that bark", "die Hunde, die die Katzen jagen", set()),
        ("a very old dog", "ein sehr sehr Sehr alter Hund", {"repetition"}),
        ("a very, very, very old dog", "ein sehr, sehr, sehr alter Hund", set()),
        ("a dog in Rome", "ein Hund in Rom in Rom", {"repetition"}),
        ("a man here and a man there", "ein Mann hier und ein Mann hier und dort", {"repetition"}),
        ("The dog sleeps.", "The dog sleeps.", {"copy"}),
        ("Berlin", "Berlin", set()),
        ("He lives near New York City", "Er lebt bei New York City", set()),
        ("He said it in New York City", "Er sprach it in New York City", {"copy"}),
        ("It costs 1,000 euros in 2024.", "Es kostet 1.000 Euro im Jahr 2024.", set()),
        ("It costs 1,000 euros in 2024.", "Es kostet 100 Euro im Jahr 2024.", {"number"}),
        ("Das kostet 12.000 Euro", "Cela coûte 12\u202f000 euros", set()),
        ("Zimmer 12 kostet 200 Euro", "La chambre 12 200 euros", {"number"}),
        ("Trains at 7 and 7", "Züge um 7", {"number"}),
        ("A dog runs over the field.", "", {"length"}),
        ("", "", set()),
        ("A dog runs over the field.", "Hund.", set()),  # at most 10 characters from half of it
        ("A man and a dog run over the green field.", "Hund.", {"length"}),
        ("One dog.", "Ein Hund, wie man ihn sonst nur selten sieht.", {"length"}),
        ("我看见一只狗", "我看见一只狗", {"copy"}),
    ],
)  # fmt: skip
def test_signs(source, translation, expected):
    assert signs(source, translation) == expected


def test_texts_must_match():
    with pytest.raises(ValueError, match="translations must be 2 texts, one per source, got '1 te"):
        suspects(["a", "b"], ["c"])
    assert suspects([], []) == {sign: [] for sign in SIGNS}
