"""Inflection for the embedded corpus: pronouns, determiners, numbers, and rules for word forms.

The rules inflect German nouns, adjectives and verbs, and English verbs; these words are listed in
`lexicon`.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun: singular and plural in both languages ("" if there is none), gender m, f or n.

    `sex` is the row of PRONOUNS that English uses, `kind` selects the adjectives, `weak` marks the
    n-declension, `at` holds a place's prepositions: English, German, German for directions.
    """

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    kind: str
    sex: str = "it"
    weak: bool = False
    at: tuple[str, ...] = ()


class Adjective(NamedTuple):
    """An adjective: positive and comparative ("" if unused), in German without ending."""

    english: str
    german: str
    english_more: str = ""
    german_more: str = ""


class Verb(NamedTuple):
    """A verb: English base, -s, past, participle, -ing; German infinitive and other forms.

    German finite forms are in the order ich, du, er, wir, sie (plural). `governs` lists cases, a
    preposition with its case, "to" (direction) or "in" (place); `roles` the nouns it takes.
    """

    english: tuple[str, ...]
    particle: str  # turn on
    preposition: str  # look for
    infinitive: str
    prefix: str  # separable: an in anrufen
    present: tuple[str, ...]
    preterite: tuple[str, ...]  # () where the spoken past is the perfect
    participle: str
    with_sein: bool
    reflexive: bool
    governs: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    uses: str = ""
    places: tuple[str, ...] = ()


class Modal(NamedTuple):
    """A modal: English base, past, further words and kind (aux, do, be); German finite forms."""

    base: str
    past: str
    rest: str
    kind: str
    present: tuple[str, ...]
    preterite: tuple[str, ...]


class Determiner(NamedTuple):
    """A determiner: English singular and plural, German stem, German declension pattern."""

    english: str
    plural: str
    german: str
    pattern: str
    definite: bool = True


# Each row: English subject, object, possessive; German nominative, accusative, dative, possessive,
# reflexive. In the third person German follows the gender of the noun, English its sex.
PRONOUNS = {
    "I": ("I me my", "ich mich mir mein mich"),
    "you": ("you you your", "du dich dir dein dich"),
    "he": ("he him his", "er ihn ihm sein sich"),
    "she": ("she her her", "sie sie ihr ihr sich"),
    "it": ("it it its", "es es ihm sein sich"),
    "we": ("we us our", "wir uns uns unser uns"),
    "they": ("they them their", "sie sie ihnen ihr sich"),
}
PRONOUNS = {row: (english.split(), german.split()) for row, (english, german) in PRONOUNS.items()}
GENDER_ROW = {"m": "he", "f": "she", "n": "it", "pl": "they"}
PERSON = {"I": 0, "you": 1, "he": 2, "she": 2, "it": 2, "we": 3, "they": 4}  # index of verb forms
RELATIVE = {  # relative pronouns by gender: nominative, accusative, dative, genitive
    "he": ["der", "den", "dem", "dessen"],
    "she": ["die", "die", "der", "deren"],
    "it": ["das", "das", "dem", "dessen"],
    "they": ["die", "die", "denen", "deren"],
}

CASES = {"nom": 0, "acc": 1, "dat": 2, "gen": 3}


def _endings(m: str, f: str, n: str, pl: str) -> dict[str, list[str]]:
    """Return the endings by gender and for the plural, in the order of CASES; "-" is none."""
    rows = {"m": m, "f": f, "n": n, "pl": pl}
    return {gender: row.replace("-", "").split(" ") for gender, row in rows.items()}


STRONG = _endings("er en em en", "e e er er", "es es em en", "e e en er")
WEAK = _endings("e en en en", "e e en en", "e e en en", "en en en en")
MIXED = _endings("er en en en", "e e en en", "es es en en", "en en en en")
# Declension of a determiner and of the adjective that follows it: weak after der, mixed after ein;
# strong without determiner or after one without endings, as the adjective must show the case.
PATTERNS = {
    "the": (
        _endings("der den dem des", "die die der der", "das das dem des", "die die den der"),
        WEAK,
    ),
    "der": (_endings("er en em es", "e e er er", "es es em es", "e e en er"), WEAK),
    "ein": (_endings("- en em es", "e e er er", "- - em es", "e e en er"), MIXED),
    "bare": (_endings("- - - -", "- - - -", "- - - -", "- - - -"), STRONG),
}

THE = Determiner("the", "the", "", "the")
A = Determiner("a", "", "ein", "ein", definite=False)
NOT_A = Determiner("a", "", "kein", "ein", definite=False)  # did not buy a coat: keinen Mantel
NO = Determiner("no", "no", "kein", "ein", definite=False)
BARE = Determiner("", "", "", "bare", definite=False)
NOT_BARE = Determiner("", "", "kein", "ein", definite=False)
MANY = Determiner("many", "many", "viele", "bare", definite=False)
THIS = Determiner("this", "these", "dies", "der")
WHICH = Determiner("which", "which", "welch", "der")


def possessive(english_row: str, german_row: str) -> Determiner:
    """Make my, his, ...; the rows differ where only German has a gender: the girl ... her: sein."""
    english = PRONOUNS[english_row][0][2]
    return Determiner(english, english, PRONOUNS[german_row][1][3], "ein")


def of_name(person: str) -> Determiner:
    """Make Anna's: Annas, which does not decline; the adjective is strong: Annas alter Hund."""
    return Determiner(f"{person}'s", f"{person}'s", f"{person}s", "bare")


def decline(
    determiner: Determiner,
    adjective: Adjective | None,
    noun: Noun,
    case: str = "nom",
    plural: bool = False,
) -> str:
    """Return the German noun phrase in a case (nom, acc, dat, gen)."""
    index = CASES[case]
    gender = "pl" if plural else noun.gender
    articles, adjectives = PATTERNS[determiner.pattern]
    words = determiner.german + articles[gender][index]
    if adjective:
        stem = adjective.german.replace("teuer", "teur")
        words += " " + stem + adjectives[gender][index]
    return f"{words} {decline_noun(noun, case, plural)}".lstrip()


def decline_noun(noun: Noun, case: str, plural: bool = False) -> str:
    """Decline a noun: dative plural -n, genitive -s or -es, n-declension but in the nominative."""
    if plural:
        add_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
        return noun.german_plural + "n" * add_n
    if noun.weak and case != "nom":
        return noun.german_plural
    if case == "gen" and noun.gender != "f":
        short = len(re.findall("[aeiouäöü]+", noun.german.lower())) == 1  # one syllable
        return noun.german + ("es" if short or noun.german.endswith(("s", "ß", "z")) else "s")
    return noun.german


def conjugate_present(infinitive: str, irregular: str = "-") -> tuple[str, ...]:
    """Return the forms for ich, du, er, wir, sie; `irregular` is the er-form, "-" if regular."""
    if infinitive == "sein":
        return "bin", "bist", "ist", "sind", "sind"
    stem = infinitive.removesuffix("n").removesuffix("e")
    # a stem in -t, -d, -ffn, -gn or -chn needs an e before -st and -t: wartest, öffnet
    link = "e" if stem.endswith(("t", "d", "ffn", "gn", "chn")) else ""
    if irregular == "-":
        second = stem + link + "st" if link else second_person(stem)
        return stem + "e", second, stem + link + "t", infinitive, infinitive
    if not irregular.endswith("t"):  # weiß, mag
        return irregular, second_person(irregular), irregular, infinitive, infinitive
    return stem + "e", second_person(irregular[:-1]), irregular, infinitive, infinitive


def conjugate_preterite(form: str) -> tuple[str, ...]:
    """Return the forms for ich, du, er, wir, sie of a past form (war, konnte); () for ""."""
    if not form:
        return ()
    plural = form + ("n" if form.endswith("e") else "en")
    return form, second_person(form), form, plural, plural


def second_person(stem: str) -> str:
    """Return the du-form: gibst; after s, ß, x, z only -t: liest."""
    return stem + ("t" if stem.endswith(("s", "ß", "x", "z")) else "st")


def english_third_person(base: str) -> str:
    """Return the English -s form: goes, washes, tidies, has."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


ONES = {
    "english": "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen",
    "german": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
    "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
}
TENS = {
    "english": "twenty thirty forty fifty sixty seventy eighty ninety",
    "german": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
}
ORDINALS = {
    "english": "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "german": "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte",
}


def number(value: int) -> tuple[str, str]:
    """Write 0 to 99 in words, English and German (with the ones first: dreiundzwanzig)."""
    if not 0 <= value <= 99:
        raise ValueError(f"value must be from 0 to 99, got {value}")
    if value < 20:
        return ONES["english"].split()[value], ONES["german"].split()[value]
    ten, one = value // 10 - 2, value % 10
    english, german = TENS["english"].split()[ten], TENS["german"].split()[ten]
    if not one:
        return english, german
    english_one, german_one = number(one)
    return f"{english}-{english_one}", f"{german_one.removesuffix('s' * (one == 1))}und{german}"


def ordinal(value: int) -> tuple[str, str]:
    """Write 1 to 31 as ordinals, for days of the month: third, dritte; thirtieth, dreißigste."""
    if not 1 <= value <= 31:
        raise ValueError(f"value must be from 1 to 31, got {value}")
    english, german = number(value)
    if value <= 12:
        return ORDINALS["english"].split()[value - 1], ORDINALS["german"].split()[value - 1]
    if value < 20:
        return english + "th", german + "te"
    if not value % 10:
        return english.removesuffix("y") + "ieth", german + "ste"
    return f"{english.split('-')[0]}-{ordinal(value % 10)[0]}", german + "ste"


def clock(hour: int, minute: int) -> tuple[str, str]:
    """Write a time of day; hour 1 to 12, minute a multiple of 5 except 25 and 35.

    German counts half hours towards the next hour: half past seven is halb acht.
    """
    if not 1 <= hour <= 12 or minute not in (0, 5, 10, 15, 20, 30, 40, 45, 50, 55):
        raise ValueError(
            "hour must be from 1 to 12 and minute 0, 5, 10, 15, 20, 30, 40, 45, 50 or 55, "
            f"got {hour} and {minute}"
        )
    if minute == 0:
        english, german = number(hour)
        return f"at {english} o'clock", f"um {'ein' if hour == 1 else german} Uhr"
    following = hour % 12 + 1
    if minute == 30:
        return f"at half past {number(hour)[0]}", f"um halb {number(following)[1]}"
    to = minute > 30
    distance = 60 - minute if to else minute
    english, german = ("quarter", "Viertel") if distance == 15 else number(distance)
    hour_english, hour_german = number(following if to else hour)
    words = ("to", "vor") if to else ("past", "nach")
    return f"at {english} {words[0]} {hour_english}", f"um {german} {words[1]} {hour_german}"
