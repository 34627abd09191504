"""Rules for word forms: declension of German nouns, possessives, numbers, dates, clock times.

Endings and irregular forms are in `lexicon.toml`.
"""

from __future__ import annotations

import re

from keras_transformer.demo.lexicon import WORDS, Adjective, Determiner, Noun

Pair = tuple[str, str]  # English and German

PRONOUNS, RELATIVE = WORDS["pronouns"], WORDS["relative"]
GENDER_ROW = {"m": "he", "f": "she", "n": "it"}  # rows of PRONOUNS
PERSON = {"I": 0, "you": 1, "he": 2, "she": 2, "it": 2, "we": 3, "they": 4}  # index of verb forms
CASES = {"nom": 0, "acc": 1, "dat": 2, "gen": 3}
DETERMINERS = {name: Determiner(**row) for name, row in WORDS["determiners"].items()}


def possessive(english_row: str, german_row: str) -> Determiner:
    """Return a possessive determiner (my, his), given rows of PRONOUNS for both languages.

    The rows differ if the genders differ: for das Mädchen, English has "her" and German "sein".
    """
    english = PRONOUNS[english_row]["english"][2]
    return Determiner(english, english, PRONOUNS[german_row]["german"][3], "ein")


def of_name(person: str) -> Determiner:
    """Return a name as a possessive determiner: Anna's, Annas; the German form has no endings."""
    return Determiner(f"{person}'s", f"{person}'s", f"{person}s", "bare")


def counting(value: int) -> Determiner:
    """Return a number as the determiner of a plural noun."""
    english, german = number(value)
    return Determiner(english, english, german, "bare", definite=False)


def decline(
    determiner: Determiner,
    adjective: Adjective | None,
    noun: Noun,
    case: str = "nom",
    plural: bool = False,
) -> str:
    """Return the German noun phrase in a case (nom, acc, dat, gen)."""
    gender, index = "pl" if plural else noun.gender, CASES[case]
    endings = WORDS["determiner_endings"][determiner.pattern]
    words = [determiner.german + endings[gender][index]]
    if adjective:
        stem = adjective.german.replace("teuer", "teur")
        words.append(stem + WORDS["endings"][endings["adjective"]][gender][index])
    return " ".join([*words, decline_noun(noun, case, plural)]).lstrip()


def decline_noun(noun: Noun, case: str, plural: bool = False) -> str:
    """Return the German noun in a case: with -s, -es or -n, or the plural form for a weak noun."""
    if plural:
        add_n = case == "dat" and not noun.german_plural.endswith(("n", "s"))
        return noun.german_plural + "n" * add_n
    if noun.weak and case != "nom":
        return noun.german_plural
    if case == "gen" and noun.gender != "f":
        short = len(re.findall("[aeiouäöü]+", noun.german.lower())) == 1  # one syllable
        return noun.german + ("es" if short or noun.german.endswith(("s", "ß", "z")) else "s")
    return noun.german


def with_article(english: str) -> str:
    """Return an English word with "a" or "an" before it."""
    return f"{'an' if english[0] in 'aeiou' else 'a'} {english}"


def number(value: int) -> Pair:
    """Return a number from 0 to 99 in words; German writes the ones first (dreiundzwanzig)."""
    if value < 20:
        return tuple(WORDS["ones"][value])
    (english, german), ones = WORDS["tens"][value // 10 - 2], value % 10
    if not ones:
        return english, german
    english_one, german_one = number(ones)
    return f"{english}-{english_one}", f"{german_one.removesuffix('s' * (ones == 1))}und{german}"


def ordinal(value: int) -> Pair:
    """Return a number from 1 to 31 as an ordinal, for days of a month: third, dritte."""
    if value <= 12:
        return tuple(WORDS["ordinals"][value - 1])
    english, german = number(value)
    if value < 20:
        return english + "th", german + "te"
    if not value % 10:
        return english.removesuffix("y") + "ieth", german + "ste"
    return f"{english.split('-')[0]}-{ordinal(value % 10)[0]}", german + "ste"


def clock(hour: int, minute: int) -> Pair:
    """Return a time of day in words, such as "at half past seven".

    German counts half hours towards the next hour: half past seven is halb acht.

    Args:
        hour: From 1 to 12.
        minute: A multiple of 5 from 0 to 55, except 25 and 35.
    """
    (english, german), following = number(hour), number(hour % 12 + 1)
    if minute == 0:
        return f"at {english} o'clock", f"um {'ein' if hour == 1 else german} Uhr"
    if minute == 30:
        return f"at half past {english}", f"um halb {following[1]}"
    distance = min(minute, 60 - minute)
    minutes, minuten = ("quarter", "Viertel") if distance == 15 else number(distance)
    if minute < 30:
        return f"at {minutes} past {english}", f"um {minuten} nach {german}"
    return f"at {minutes} to {following[0]}", f"um {minuten} vor {following[1]}"
