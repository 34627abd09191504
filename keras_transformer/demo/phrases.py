"""Phrases of the embedded corpus: random people, things, places and times.

The words of a phrase fit each other in meaning. `events` builds clauses from these phrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import (
    BARE,
    MANY,
    NOT_A,
    NOT_BARE,
    THE,
    THIS,
    A,
    Adjective,
    Determiner,
    Noun,
    clock,
    number,
    of_name,
    ordinal,
    possessive,
)
from keras_transformer.demo.syntax import (
    NounPhrase,
    Pair,
    Part,
    genitive,
    noun_phrase,
    pronoun,
)

NOUNS = lexicon.NOUNS_BY_ROLE
PEOPLE, KIN = NOUNS["person"], NOUNS["kin"] + NOUNS["folks"]
NAMES = lexicon.WOMEN + lexicon.MEN
GOODS = NOUNS["goods"]
GOODS_BY_KIND = {n.kind: [other for other in GOODS if other.kind == n.kind] for n in GOODS}
SPEAKERS = [possessive(row, row) for row in ("I", "you", "we")]
COUNTED, ROOMS = ({noun.english for noun in NOUNS[role]} for role in ("count", "room"))
NOBODYS = {"beast", "hear", "attend", "draw", "begin", "wait", "sing", "tell"}  # no "my lion"


def pick(rng: Random, choices: Sequence) -> Any:
    """Draw one of the choices; faster than `rng.choice`, and the same in all Python versions."""
    return choices[int(rng.random() * len(choices))]


# ---- Things and people ----


def suited(rng: Random, noun: Noun, probability: float = 0.3) -> Adjective | None:
    """Return an adjective that suits the noun with this probability, else None."""
    if rng.random() > probability:
        return None
    return pick(rng, lexicon.ADJECTIVES_BY_KIND[noun.kind])


def named(name: str) -> NounPhrase:
    """Make a noun phrase of a first name, which has one form for all cases but the genitive."""
    row = "she" if name in lexicon.WOMEN else "he"
    return NounPhrase(name, name, row, row, "definite", name)


def person(rng: Random, case: str, plural: bool = False) -> NounPhrase:
    """Draw a person with the definite article: the (old) neighbour."""
    noun = pick(rng, PEOPLE)
    return noun_phrase(THE, suited(rng, noun, 0.2), noun, case, plural)


def owning(rng: Random, owner: NounPhrase | None) -> Determiner:
    """Draw a possessive, mostly that of the subject, which decides between sein and ihr."""
    chance = rng.random()
    if owner and chance < 0.6:
        return possessive(owner.english_row, owner.german_row)
    name = pick(rng, NAMES)
    if chance > 0.85 and not (owner and name in owner.english):
        return of_name(name)
    return pick(rng, SPEAKERS)


def kin(rng: Random, case: str, owner: NounPhrase | None) -> NounPhrase:
    """Draw a relative other than the owner: my brother, her parents."""
    noun = pick(rng, KIN)
    while owner and noun == owner.about:
        noun = pick(rng, KIN)
    plural = not noun.english or (bool(noun.english_plural) and rng.random() < 0.15)
    return noun_phrase(owning(rng, owner), None, noun, case, plural)


def subject(rng: Random, pronouns: bool = True, other: NounPhrase | None = None) -> NounPhrase:
    """Draw a subject that differs from `other`."""
    while True:
        chance = rng.random()
        if chance < 0.28 and pronouns:
            row = pick(rng, ("I", "you", "he", "she", "we", "they"))
            who = pronoun(row, row)
        elif chance < 0.55:
            who = named(pick(rng, NAMES))
        elif chance < 0.8:
            who = person(rng, "nom", plural=chance > 0.75)
        else:
            who = kin(rng, "nom", None)
        if not other or who.about != other.about:
            return who


def somebody(rng: Random, case: str, owner: NounPhrase) -> NounPhrase:
    """Draw a person as object, but no pronoun that would be reflexive."""
    chance = rng.random()
    if chance < 0.2:
        row = pick(rng, OBJECT_PRONOUNS.get(owner.english_row, ("I", "you", "we", "he", "she")))
        if row != owner.english_row:
            return pronoun(row, row, case)
    name = pick(rng, NAMES)
    if chance < 0.45 and name not in owner.english:
        return named(name)
    if chance < 0.7:
        phrase = person(rng, case)
        if phrase.about != owner.about:
            return phrase
    return kin(rng, case, owner)


OBJECT_PRONOUNS = {"I": ("you", "he", "she"), "we": ("you", "he", "she"), "you": ("I", "he", "she")}


def thing(
    rng: Random, role: str, case: str, owner: NounPhrase, negated: bool = False, bare: bool = False
) -> NounPhrase:
    """Draw a noun of a role as object: the, a, my, this, twelve, many ...

    With `bare` there is no determiner: the phrase is about the kind (likes to read books).
    """
    noun = pick(rng, NOUNS[role])
    adjective = suited(rng, noun, 0.12 if bare else 0.3)
    chance, mass = rng.random(), not noun.english_plural
    if bare or (mass and chance > 0.4):
        determiner = NOT_BARE if negated and not bare else BARE
        return noun_phrase(determiner, adjective, noun, case, plural=not mass)
    if chance < 0.3 or mass:
        return noun_phrase(THE, adjective, noun, case, plural=chance < 0.06 and not mass)
    if chance < 0.65:
        return noun_phrase(NOT_A if negated else A, adjective, noun, case)
    if chance < 0.75 and case == "acc" and not (negated or role in ("topic", "joy")):
        many = counting(2 + int(rng.random() * 29)) if noun.english in COUNTED else MANY
        return noun_phrase(many, adjective, noun, case, plural=True)
    if chance < 0.8 and role not in NOBODYS:
        return genitive(possessor(rng), adjective, noun, case)
    if chance < 0.92 and role not in NOBODYS:
        return noun_phrase(owning(rng, owner), adjective, noun, case, plural=chance > 0.9)
    return noun_phrase(THIS, adjective, noun, case, plural=chance > 0.98)


def counting(value: int) -> Determiner:
    """Make a determiner of a number, for a plural noun."""
    english, german = number(value)
    return Determiner(english, english, german, "bare", definite=False)


def possessor(rng: Random) -> NounPhrase:
    """Draw an owner in the genitive: the neighbour, my sister."""
    if rng.random() < 0.5:
        return noun_phrase(THE, None, pick(rng, PEOPLE), "gen")
    return noun_phrase(pick(rng, SPEAKERS), None, pick(rng, NOUNS["kin"]), "gen")


# ---- Places and times ----

CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "zu dem": "zum", "zu der": "zur", "von dem": "vom",
}  # fmt: skip


def contract(preposition: str, phrase: str) -> str:
    """Contract preposition and article: in dem Garten becomes im Garten."""
    article, _, rest = phrase.partition(" ")
    both = f"{preposition} {article}"
    return f"{CONTRACTIONS.get(both, both)} {rest}".rstrip()


def place(rng: Random, roles: Sequence[str], direction: bool = False) -> Part:
    """Draw a place (in, an with the dative), or a direction (with the accusative, or zu)."""
    slot = "direction" if direction else "place"
    role = pick(rng, roles)
    if role == "TOWN":
        english, german, german_to = pick(rng, lexicon.TOWNS)
        if direction:
            return Part(f"to {english}", german_to, slot)
        return Part(f"in {english}", german, slot)
    noun = pick(rng, NOUNS[role])
    english, german, german_to = noun.at
    case = "dat"
    if direction:
        english, german = "into" if noun.english in ROOMS else "to", german_to
        case = "dat" if german_to == "zu" else "acc"
    determiner = A if rng.random() < 0.1 and noun.english not in ROOMS else THE
    phrase = noun_phrase(determiner, suited(rng, noun, 0.2), noun, case)
    return Part(f"{english} {phrase.english}", contract(german, phrase.german), slot)


def spot(rng: Random, case: str, about: Noun, wall: bool = False) -> Part:
    """Draw on, under, next to something: dative for a place, accusative for a direction."""
    english, german, noun = ("on", "an", "wall") if wall else pick(rng, lexicon.SPOTS)
    while noun == about.english:
        english, german, noun = pick(rng, lexicon.SPOTS)
    noun = lexicon.NOUNS[noun]
    phrase = noun_phrase(THE, suited(rng, noun, 0.2), noun, case)
    return Part(f"{english} {phrase.english}", contract(german, phrase.german), "direction")


def time(rng: Random, tense: str, uses: str = "") -> Part:
    """Draw a time of the past, of the future or of a habit that suits the `uses` of a verb."""
    chance, far = rng.random(), "F" in uses
    if tense == "habit":
        english, german = pick(rng, lexicon.DAILY_TIMES if "D" in uses else lexicon.HABIT_TIMES)
    elif tense == "past":
        english, german = pick(rng, ALL_PAST_TIMES if far else lexicon.PAST_TIMES)
    else:
        english, german = pick(rng, ALL_FUTURE_TIMES if far else lexicon.FUTURE_TIMES)
    if chance < 0.3:
        (english, german), plural = pick(rng, lexicon.WEEKDAYS), "s" * (tense == "habit")
        english = f"on {english}{plural}"
        german = german.lower() + "s" if plural else f"am {german}"
    elif chance < 0.42 and tense != "habit":
        (day, tag), (month, monat) = ordinal(1 + int(rng.random() * 31)), pick(rng, lexicon.MONTHS)
        return Part(f"on the {day} of {month}", f"am {tag}n {monat}", "time")
    elif chance < 0.52 and tense != "habit" and "D" not in uses:
        (count, zahl), (unit, einheit) = (
            number(2 + int(rng.random() * 11)),
            pick(rng, lexicon.SPANS[: 4 if far else 2]),
        )
        if tense == "past":
            return Part(f"{count} {unit} ago", f"vor {zahl} {einheit}", "time")
        return Part(f"in {count} {unit}", f"in {zahl} {einheit}", "time")
    if "e" in uses and rng.random() < 0.4 and (chance < 0.3 or not far):
        earliest, latest = next((span for day, span in PARTS_OF_DAY if day in english), (1, 12))
        at, um = hours(rng, earliest, latest)
        return Part(f"{english} {at}", f"{german} {um}", "time")
    return Part(english, german, "time")


ALL_PAST_TIMES = lexicon.PAST_TIMES + lexicon.FAR_PAST_TIMES
ALL_FUTURE_TIMES = lexicon.FUTURE_TIMES + lexicon.FAR_FUTURE_TIMES
PARTS_OF_DAY = (("morning", (6, 9)), ("evening", (6, 10)))
MINUTES = (0, 0, 0, 15, 30, 30, 45, 5, 10, 20, 40, 50, 55)


def hours(rng: Random, earliest: int = 1, latest: int = 12) -> Pair:
    """Draw a clock time."""
    return clock(earliest + int(rng.random() * (latest - earliest + 1)), pick(rng, MINUTES))
