"""Patterns of simple sentences: a function draws a sentence and returns it in both languages.

RULES lists the patterns of simple sentences and questions with their weights; `compound` lists
those of two clauses.
"""

from __future__ import annotations

from random import Random

from keras_transformer.demo import lexicon
from keras_transformer.demo.events import (
    ADJECTIVES,
    DYNAMIC,
    NAMED,
    event,
    happening,
    state,
    working_as,
)
from keras_transformer.demo.inflection import NO, THE, THIS, A, Noun, number
from keras_transformer.demo.phrases import (
    GOODS,
    GOODS_BY_KIND,
    NOUNS,
    counting,
    hours,
    kin,
    owning,
    person,
    pick,
    place,
    possessor,
    spot,
    subject,
    suited,
    time,
)
from keras_transformer.demo.questions import asked, asked_what, asked_who
from keras_transformer.demo.syntax import (
    ICH,
    Clause,
    NounPhrase,
    Pair,
    Part,
    Rules,
    as_part,
    finish,
    genitive,
    join,
    noun_phrase,
    pronoun_for,
)


def question_or_statement(rng: Random, clause: Clause, questions: float = 0.25) -> Pair:
    """Return the clause as a statement, or with some probability as a yes/no question."""
    question = not clause.negated and rng.random() < questions
    return finish(clause.main(question=question), ".?"[question])


def statement(rng: Random, clause: Clause) -> Pair:
    """Return a main clause; sometimes a time or place comes first, and the verb stays second."""
    movable = [part for part in clause.parts if part.slot in ("time", "place")]
    if movable and not clause.negated and rng.random() < 0.4:
        clause.parts.remove(movable[-1])
        return finish(clause.main(movable[-1]))
    return finish(clause.main())


def affirmed(rng: Random) -> Pair:
    """Yesterday Anna called her brother. Gestern hat Anna ihren Bruder angerufen."""
    return statement(rng, happening(rng, subject(rng)))


def denied(rng: Random) -> Pair:
    """Anna did not buy a coat. Anna hat keinen Mantel gekauft."""
    return finish(happening(rng, subject(rng), negated=True).main())


def person_described(rng: Random) -> Pair:
    """My sister is a doctor. Peter is thirty years old. Are you tired?"""
    who, chance = subject(rng), rng.random()
    if chance < 0.4:
        clause = state(who, pick(rng, lexicon.STATES), pick(rng, ("present", "past")))
        clause.negated = rng.random() < 0.3
        if clause.tense == "past" and rng.random() < 0.5:
            clause.parts.append(time(rng, "past"))
        return question_or_statement(rng, clause)
    if chance < 0.65 or who.slot == "pronoun" or who.english_row not in ("he", "she"):
        young = isinstance(who.about, Noun) and who.about.english in ("girl", "boy", "child")
        youngest, span = (2, 16) if young else (18, 82)
        english, german = number(youngest + int(rng.random() * span))
        return finish(state(who, (f"{english} years old", f"{german} Jahre alt")).main())
    return finish(working_as(who, pick(rng, lexicon.PROFESSIONS)).main())


def thing_described(rng: Random) -> Pair:
    """The red coat is more expensive than this hat; costs ninety euros; belongs to my aunt."""
    chance = rng.random()
    what = owned_thing(rng, pick(rng, GOODS), 0.25 if chance < 0.4 else 0)
    if chance < 0.2:
        return finish(priced(rng, what).main())
    if chance < 0.4:
        owner = kin(rng, "dat", None) if chance < 0.3 else person(rng, "dat")
        verb = NAMED["belong gehören"]
        return question_or_statement(rng, Clause(what, verb, [as_part(owner, verb)]))
    adjective = pick(rng, ADJECTIVES[what.about.kind])
    tense = pick(rng, ("present", "past"))
    others = [noun for noun in GOODS_BY_KIND[what.about.kind] if noun is not what.about]
    if chance < 0.7 and adjective.english_more and others:
        other = owned_thing(rng, pick(rng, others))
        english = f"{adjective.english_more} than {other.english}"
        predicate = english, f"{adjective.german_more} als {other.german}"
        return finish(state(what, predicate, tense).main())
    english, german = ("very", "sehr") if adjective.english_more else ("", "")
    if adjective.english not in lexicon.CHARMS and german and rng.random() < 0.5:
        english, german = "too", "zu"
    predicate = join(english, adjective.english), join(german, adjective.german)
    clause = state(what, predicate, tense)
    clause.negated = rng.random() < 0.2
    return question_or_statement(rng, clause)


def owned_thing(rng: Random, noun: Noun, described: float = 0.25) -> NounPhrase:
    """Return a thing that one can point at: the hat, this hat, my brother's hat, Anna's red hat."""
    adjective, chance = suited(rng, noun, described), rng.random()
    if chance < 0.12:
        return genitive(possessor(rng), adjective, noun, "nom")
    if chance < 0.3:
        return noun_phrase(owning(rng, None), adjective, noun)
    return noun_phrase(THIS if chance < 0.4 else THE, adjective, noun)


def priced(rng: Random, what: NounPhrase, only: Pair = ("", "")) -> Clause:
    """Return a clause about a price; German Euro has no plural in a price."""
    english, german = number(2 + int(rng.random() * 98))
    price = Part(join(only[0], english, "euros"), join(only[1], german, "Euro"), "indefinite")
    return Clause(what, NAMED["cost kosten"], [price])


def having(rng: Random) -> Pair:
    """Peter has a dog. Peter hat einen Hund. He does not have a car. Er hat kein Auto."""
    who, chance = subject(rng), rng.random()
    noun = pick(rng, NOUNS[pick(rng, ("own", "wear", "small"))])
    plural, negated = chance < 0.2, chance > 0.7
    determiner = counting(2 + int(rng.random() * 11)) if plural else A
    if negated:
        determiner = determiner._replace(german="kein")
    part = as_part(noun_phrase(determiner, suited(rng, noun), noun, "acc", plural))
    tense = pick(rng, ("present", "present", "past"))
    clause = Clause(who, NAMED["have haben"], [part], tense, negated=negated)
    return question_or_statement(rng, clause)


POSTURES = [  # lie, stand and hang in German where English has be and put
    ("lay", NAMED["be liegen"], NAMED["put legen"]),
    ("stand", NAMED["be stehen"], NAMED["put stellen"]),
    ("hang", NAMED["be hängen"], NAMED["hang hängen"]),
]


def located(rng: Random) -> Pair:
    """The key is on the table: Der Schlüssel liegt auf dem Tisch. Where is it? It is ..."""
    role, lies, lay = pick(rng, POSTURES)
    noun, chance, who = pick(rng, NOUNS[role]), rng.random(), subject(rng)
    plural = bool(noun.english_plural) and rng.random() < 0.25
    adjective = suited(rng, noun, 0.2)
    if chance < 0.35:  # she put it onto something: accusative
        determiner = owning(rng, who) if rng.random() < 0.3 else THE
        what = noun_phrase(determiner, adjective, noun, "acc", plural)
        clause = Clause(who, lay, [as_part(what), spot(rng, "acc", noun, role == "hang")], "past")
        if rng.random() < 0.3:
            clause.parts.append(time(rng, "past"))
        return statement(rng, clause)
    determiner = owning(rng, None) if rng.random() < 0.3 else THE
    what = noun_phrase(determiner, adjective, noun, "nom", plural)
    there = spot(rng, "dat", noun, role == "hang")
    if chance < 0.65:
        tense = pick(rng, ("present", "past"))
        return question_or_statement(rng, Clause(what, lies, [there], tense))
    where = Clause(what, NAMED["be sein"], [])
    english, german = finish(where.main(Part("where", "wo"), question=True), "?")
    if chance < 0.75:
        return english, german
    if chance < 0.88:
        second = Clause(pronoun_for(what), lies, [there])
    else:
        found = as_part(pronoun_for(what, "acc"))
        second = Clause(ICH, NAMED["find finden"], [found], negated=True)
        second.modal = lexicon.MODAL_LIST[0]
    answer = finish(second.main())
    return f"{english} {answer[0]}", f"{german} {answer[1]}"


def existing(rng: Random) -> Pair:
    """In the village there are three old churches. Im Dorf gibt es drei alte Kirchen."""
    where, noun, chance = place(rng, ("TOWN", "live")), pick(rng, NOUNS["sight"]), rng.random()
    plural, adjective = chance < 0.4, suited(rng, noun, 0.5)
    determiner = counting(2 + int(rng.random() * 11)) if plural else A if chance < 0.75 else NO
    what = noun_phrase(determiner, adjective, noun, "acc", plural)
    english = join(where.english, "there", "are" if plural else "is", what.english)
    return finish((english, join(where.german, "gibt es", what.german)))


def timetable(rng: Random) -> Pair:
    """The train to Berlin leaves at half past seven. Der Zug nach Berlin fährt um halb acht ab."""
    chance = rng.random()
    if chance < 0.25:
        noun = pick(rng, NOUNS["begin"])
        what, verb = noun_phrase(THE, suited(rng, noun), noun), NAMED["begin anfangen"]
    elif chance < 0.45:
        noun = pick(rng, NOUNS["hours"])
        what = noun_phrase(THE, suited(rng, noun, 0.2), noun)
        verb = NAMED[pick(rng, ("open öffnen", "close schließen"))]
    else:
        what = noun_phrase(THE, None, pick(rng, NOUNS["leave"]))
        english, german, direction = pick(rng, lexicon.TOWNS)
        verb, english, german = pick(
            rng,
            (
                (NAMED["leave abfahren"], f"to {english}", direction),
                (NAMED["arrive ankommen"], f"from {english}", german.replace("in", "aus", 1)),
            ),
        )
        what = what._replace(english=f"{what.english} {english}", german=f"{what.german} {german}")
    tense = "past" if rng.random() < 0.25 else "present"
    if rng.random() < 0.15:
        return finish(Clause(what, verb, [], tense).main(Part("when", "wann"), question=True), "?")
    at, um = hours(rng)
    if tense == "past" or rng.random() < 0.3:
        day, tag = pick(rng, lexicon.WEEKDAYS)
        days, tage = ("", f"am {tag}") if tense == "past" else ("s", tag.lower() + "s")
        at, um = f"on {day}{days} {at}", f"{tage} {um}"
    return finish(Clause(what, verb, [Part(at, um, "time")], tense).main())


def moving(rng: Random) -> Pair:
    """The cat jumped onto the table: auf den Tisch. It is sleeping on the table: auf dem Tisch."""
    noun = pick(rng, NOUNS["pet"])
    animal = noun_phrase(owning(rng, None) if rng.random() < 0.3 else THE, suited(rng, noun), noun)
    if rng.random() < 0.5:
        where = spot(rng, "dat", noun)
        return finish(Clause(animal, NAMED["sleep schlafen"], [where], "progressive").main())
    where = spot(rng, "acc", noun)
    while not where.english.startswith("on "):
        where = spot(rng, "acc", noun)
    where = where._replace(english="onto" + where.english[2:])
    return finish(Clause(animal, NAMED["jump springen"], [where], "past").main())


def playing(rng: Random) -> Pair:
    """Nina can play the piano. Nina kann Klavier spielen."""
    part = Part(*pick(rng, lexicon.PLAYED), "indefinite")
    clause, chance = Clause(subject(rng), NAMED["play spielen"], [part]), rng.random()
    if chance < 0.4:
        clause.tense = pick(rng, ("liking", "progressive"))
    elif chance < 0.7:
        clause.frequency = pick(rng, lexicon.FREQUENCIES)
    else:
        clause.modal = lexicon.MODAL_LIST[0]
        return question_or_statement(rng, clause)
    return finish(clause.main())


ANIMALS = NOUNS["pet"] + NOUNS["beast"]
MOVES = ("sleep", "swim", "rest", "wake", "fall", "come")
ANIMAL_VERBS = [verb for verb in DYNAMIC if not verb.governs and verb.english[0] in MOVES]


def told(rng: Random) -> Pair:
    """The small dog sleeps. Anna reads a book. Do you eat meat? We do not eat meat."""
    verb, who = pick(rng, DYNAMIC), subject(rng)
    if rng.random() < 0.3:
        verb, noun = pick(rng, ANIMAL_VERBS), pick(rng, ANIMALS)
        determiner = pick(rng, (THE, THE, A, owning(rng, None)))
        who = noun_phrase(determiner, suited(rng, noun, 0.5), noun)
    while verb.english[0] == verb.english[2] and who.english_row not in ("he", "she", "it"):
        verb = pick(rng, DYNAMIC)  # "they read" may be present or past
    clause = event(rng, who, verb=verb, negated=rng.random() < 0.1)
    return question_or_statement(rng, clause, 0.15)


def employed(rng: Random) -> Pair:
    """She is a doctor. My brother is a cook. Sie ist Ärztin. Mein Bruder ist Koch."""
    who = subject(rng)
    while who.english_row not in ("he", "she"):
        who = subject(rng)
    return finish(working_as(who, pick(rng, lexicon.PROFESSIONS)).main())


RULES: Rules = (
    (affirmed, 16), (denied, 7), (asked, 6), (asked_what, 6), (asked_who, 2),
    (person_described, 4), (thing_described, 4), (having, 3), (located, 6), (existing, 2),
    (timetable, 4), (moving, 2), (playing, 2),
)  # fmt: skip
