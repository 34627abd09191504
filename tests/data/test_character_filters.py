"""Tests of keras_transformer.data.character_filters."""

import pytest

from keras_transformer.data.character_filters import CHARACTER_FILTERS

GOOD = ("A dog runs.", "Ein Hund läuft.")


def reasons(source, target):
    return [x for one in CHARACTER_FILTERS.values() if (x := one(source, target))]


@pytest.mark.parametrize(
    ("reason", "source", "target"),
    [
        ("encoding", "A dog runs.", "Ein Hund lÃ¤uft."),
        ("encoding", "A big dog.", "Ein groÃŸer Hund."),  # Windows-1252
        ("encoding", "It’s a dog.", "Câ€™est un chien."),
        ("encoding", "A dog.", "Ð¡Ð¾Ð±Ð°ÐºÐ°."),
        ("encoding", "A dog runs.", "Ein Hund l\ufffduft."),
        ("encoding", "A dog\x00 runs.", "Ein Hund läuft."),
        ("letters", "12 34 56 | 78 $ --", "zwölf"),
        ("letters", "....", "Ein Hund läuft."),
        ("numbers", "In 1990 it fell.", "Im Jahr 1995 fiel es."),
        ("numbers", "In 1990 it fell.", "Da fiel es."),
        ("numbers", "It costs $1,500.", "Es kostet 15.000 $."),
        ("question", "Is it a dog?", "Es ist ein Hund."),
        ("question", "It is a dog!", "“Ist es ein Hund?”"),
    ],
)
def test_what_is_wrong(reason, source, target):
    assert reasons(source, target) == [reason]
    assert reasons(target, source) == [reason]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        GOOD,
        ("NÃO É À MARCHÉ»", "ÂME, Ñandú, ÐÝR"),  # capitals, also at the end of a quotation
        ("It costs $1,000,000.", "Es kostet 1.000.000 $."),
        ("It costs 1 000 000 francs.", "Es kostet 1'000'000 Franken."),
        ("In 1990 and 1995 it fell.", "1990 fiel es."),  # half of them
        ("In 1990 it fell.", "١٩٩٠ ሆነ"),  # digits of another script
        ("Fifty dogs at 2:30 pm.", "50 Hunde um 14.30 Uhr."),  # small numbers
        ("Is it a dog?", "犬ですか。"),
        ("Is it a dog?", "Ob es ein Hund ist"),
        ("यह कुत्ता है।", "It is a dog."),  # vowel signs are no letters in Python
    ],
)
def test_good_text_stays(source, target):
    assert reasons(source, target) == reasons(target, source) == []


def test_they_are_called_by_their_reasons():
    bad = {
        "encoding": ("\ufffd", "a"),
        "letters": ("1.", "a"),
        "numbers": ("a 100", "a"),
        "question": ("a?", "a."),
    }
    assert {name: one(*bad[name]) for name, one in CHARACTER_FILTERS.items()} == {
        name: name for name in bad
    }
