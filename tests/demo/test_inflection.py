"""German and English forms against examples written by hand."""

import pytest

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import DETERMINERS, clock, decline, number, ordinal
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
bare | coffee | alter Kaffee     | alten Kaffee     | altem Kaffee       | alten Kaffees
bare | milk   | alte Milch       | alte Milch       | alter Milch        | alter Milch
bare | beer   | altes Bier       | altes Bier       | altem Bier         | alten Biers
bare | +car   | alte Autos       | alte Autos       | alten Autos        | alter Autos
this | man   | dieser alte Mann | diesen alten Mann | diesem alten Mann | dieses alten Mannes
this | child | dieses alte Kind | dieses alte Kind | diesem alten Kind  | dieses alten Kindes
the | neighbour | der alte Nachbar | den alten Nachbarn | dem alten Nachbarn | des alten Nachbarn
"""


@pytest.mark.parametrize("row", PARADIGM.strip().splitlines())
def test_declension_by_hand(row):
    name, word, *forms_by_hand = (cell.strip() for cell in row.split("|"))
    determiner, plural = DETERMINERS[name], word.startswith("+")
    word = noun(word.strip("+"))
    forms = [decline(determiner, OLD, word, case, plural) for case in ("nom", "acc", "dat", "gen")]
    expected = [form.replace("Biers", "Bieres") for form in forms_by_hand]  # both are right
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


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen kaufen"),
        ("warten", "warte wartest wartet warten warten"),
        ("öffnen", "öffne öffnest öffnet öffnen öffnen"),
        ("tanzen", "tanze tanzt tanzt tanzen tanzen"),
        ("lesen", "lese liest liest lesen lesen"),
        ("geben", "gebe gibst gibt geben geben"),
        ("laden", "lade lädst lädt laden laden"),
        ("wissen", "weiß weißt weiß wissen wissen"),
        ("haben", "habe hast hat haben haben"),
        ("sein", "bin bist ist sind sind"),
    ],
)
def test_conjugation_by_hand(infinitive, forms):
    verb = next(x for x in lexicon.NAMED_VERBS.values() if x.infinitive == infinitive)
    assert " ".join(verb.present) == forms
