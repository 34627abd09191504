"""German and English forms against examples written by hand."""

import pytest

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import (
    BARE,
    NOT_A,
    THE,
    THIS,
    A,
    clock,
    conjugate_present,
    decline,
    number,
    ordinal,
)
from tests.demo.words import OLD, noun

PARADIGM = """
the | man    | der alte Mann    | den alten Mann   | dem alten Mann     | des alten Mannes
the | aunt   | die alte Tante   | die alte Tante   | der alten Tante    | der alten Tante
the | child  | das alte Kind    | das alte Kind    | dem alten Kind     | des alten Kindes
the | +child | die alten Kinder | die alten Kinder | den alten Kindern  | der alten Kinder
a   | man    | ein alter Mann   | einen alten Mann | einem alten Mann   | eines alten Mannes
a   | aunt   | eine alte Tante  | eine alte Tante  | einer alten Tante  | einer alten Tante
a   | child  | ein altes Kind   | ein altes Kind   | einem alten Kind   | eines alten Kindes
no  | +child | keine alten Kinder | keine alten Kinder | keinen alten Kindern | keiner alten Kinder
    | coffee | alter Kaffee     | alten Kaffee     | altem Kaffee       | alten Kaffees
    | milk   | alte Milch       | alte Milch       | alter Milch        | alter Milch
    | beer   | altes Bier       | altes Bier       | altem Bier         | alten Biers
    | +car   | alte Autos       | alte Autos       | alten Autos        | alter Autos
this | man   | dieser alte Mann | diesen alten Mann | diesem alten Mann | dieses alten Mannes
this | child | dieses alte Kind | dieses alte Kind | diesem alten Kind  | dieses alten Kindes
the | neighbour | der alte Nachbar | den alten Nachbarn | dem alten Nachbarn | des alten Nachbarn
"""


@pytest.mark.parametrize("row", lexicon.rows(PARADIGM), ids=lambda row: " ".join(row[:2]))
def test_declension_by_hand(row):
    determiner = {"the": THE, "a": A, "no": NOT_A, "": BARE, "this": THIS}[row[0]]
    word, plural = noun(row[1].strip("+")), row[1].startswith("+")
    forms = [decline(determiner, OLD, word, case, plural) for case in ("nom", "acc", "dat", "gen")]
    expected = [form.replace("Biers", "Bieres") for form in row[2:]]  # both are right
    assert forms == expected


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (0, "zero", "null"),
        (1, "one", "eins"),
        (12, "twelve", "zwölf"),
        (16, "sixteen", "sechzehn"),
        (17, "seventeen", "siebzehn"),
        (20, "twenty", "zwanzig"),
        (21, "twenty-one", "einundzwanzig"),
        (23, "twenty-three", "dreiundzwanzig"),
        (30, "thirty", "dreißig"),
        (66, "sixty-six", "sechsundsechzig"),
        (77, "seventy-seven", "siebenundsiebzig"),
        (99, "ninety-nine", "neunundneunzig"),
    ],
)
def test_numbers_by_hand(value, english, german):
    assert number(value) == (english, german)


def test_numbers_are_distinct():
    assert len({number(value)[0] for value in range(100)}) == 100
    assert len({number(value)[1] for value in range(100)}) == 100


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (1, "first", "erste"),
        (3, "third", "dritte"),
        (7, "seventh", "siebte"),
        (12, "twelfth", "zwölfte"),
        (15, "fifteenth", "fünfzehnte"),
        (20, "twentieth", "zwanzigste"),
        (22, "twenty-second", "zweiundzwanzigste"),
        (30, "thirtieth", "dreißigste"),
        (31, "thirty-first", "einunddreißigste"),
    ],
)
def test_ordinals_by_hand(value, english, german):
    assert ordinal(value) == (english, german)


@pytest.mark.parametrize(
    ("hour", "minute", "english", "german"),
    [
        (1, 0, "at one o'clock", "um ein Uhr"),
        (10, 0, "at ten o'clock", "um zehn Uhr"),
        (7, 30, "at half past seven", "um halb acht"),
        (12, 30, "at half past twelve", "um halb eins"),
        (1, 15, "at quarter past one", "um Viertel nach eins"),
        (8, 45, "at quarter to nine", "um Viertel vor neun"),
        (6, 20, "at twenty past six", "um zwanzig nach sechs"),
        (12, 55, "at five to one", "um fünf vor eins"),
    ],
)
def test_clock_by_hand(hour, minute, english, german):
    assert clock(hour, minute) == (english, german)


@pytest.mark.parametrize("value", [-1, 100])
def test_number_out_of_range(value):
    with pytest.raises(ValueError, match=f"value must be from 0 to 99, got {value}"):
        number(value)


@pytest.mark.parametrize("value", [0, 32])
def test_ordinal_out_of_range(value):
    with pytest.raises(ValueError, match=f"value must be from 1 to 31, got {value}"):
        ordinal(value)


@pytest.mark.parametrize(("hour", "minute"), [(0, 0), (13, 0), (1, 25), (1, 60)])
def test_clock_out_of_range(hour, minute):
    with pytest.raises(ValueError, match=f"got {hour} and {minute}"):
        clock(hour, minute)


@pytest.mark.parametrize(
    ("infinitive", "irregular", "forms"),
    [
        ("kaufen", "-", "kaufe kaufst kauft kaufen kaufen"),
        ("warten", "-", "warte wartest wartet warten warten"),
        ("öffnen", "-", "öffne öffnest öffnet öffnen öffnen"),
        ("tanzen", "-", "tanze tanzt tanzt tanzen tanzen"),
        ("erinnern", "-", "erinnere erinnerst erinnert erinnern erinnern"),
        ("lesen", "liest", "lese liest liest lesen lesen"),
        ("geben", "gibt", "gebe gibst gibt geben geben"),
        ("laden", "lädt", "lade lädst lädt laden laden"),
        ("wissen", "weiß", "weiß weißt weiß wissen wissen"),
        ("mögen", "mag", "mag magst mag mögen mögen"),
        ("haben", "hat", "habe hast hat haben haben"),
        ("sein", "ist", "bin bist ist sind sind"),
    ],
)
def test_conjugation_by_hand(infinitive, irregular, forms):
    assert " ".join(conjugate_present(infinitive, irregular)) == forms
