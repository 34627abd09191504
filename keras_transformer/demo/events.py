"""Events of the embedded corpus: clauses in which somebody does something.

Objects, places and times suit the verb (`event`, `happening`). The patterns of whole sentences are
in `simple` and `compound`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from keras_transformer.demo import lexicon
from keras_transformer.demo.inflection import (
    THE,
    Modal,
    Verb,
)
from keras_transformer.demo.phrases import (
    NOUNS,
    contract,
    owning,
    pick,
    place,
    somebody,
    suited,
    thing,
    time,
)
from keras_transformer.demo.syntax import Clause, NounPhrase, Pair, Part, noun_phrase

VERBS = lexicon.VERB_LIST
DYNAMIC = [verb for verb in VERBS if "H" not in verb.uses]
ASKABLE = [verb for verb in DYNAMIC if verb.governs and verb.governs[0] not in ("to", "in")]
NAMED, ADJECTIVES = lexicon.NAMED_VERBS, lexicon.ADJECTIVES_BY_KIND
LETTERS = {"present": "h", "progressive": "p", "liking": "g", "state": "H"}
LETTERS |= {"clock": "e", "purpose": "q", "duty": "d"}
POOLS = {name: [verb for verb in VERBS if use in verb.uses] for name, use in LETTERS.items()} | {
    "past": DYNAMIC,
    "pluperfect": DYNAMIC,
    "planned": [verb for verb in DYNAMIC if "U" not in verb.uses],
    "done": [verb for verb in DYNAMIC if not {"U", "D"} & {*verb.uses}],
    "placed": [verb for verb in DYNAMIC if verb.places],
    "going": [verb for verb in VERBS if "to" in verb.governs],
}
RIDES = [
    Part(f"by {noun.english}", f"mit {noun_phrase(THE, None, noun, 'dat').german}", "manner")
    for noun in (*NOUNS["ride"], lexicon.NOUNS["car"], lexicon.NOUNS["bicycle"])
]


def complements(
    rng: Random, verb: Verb, who: NounPhrase, negated: bool = False, bare: bool = False
) -> list[Part]:
    """Draw the objects that a verb governs."""
    if not verb.governs:
        return []
    first, last = verb.governs[0], verb.governs[-1]
    if first in ("to", "in"):
        return [place(rng, verb.roles, first == "to")._replace(slot="direction")]
    governed = last != first != "dat"  # a preposition and its case
    negated = negated and not governed  # nicht auf einen Bus warten, but keinen Bus sehen
    phrase = complement(rng, pick(rng, verb.roles), last, who, negated, bare)
    english = f"{verb.preposition} {phrase.english}".lstrip()
    if last == first:
        return [Part(english, phrase.german, phrase.slot)]
    if governed:
        return [Part(english, contract(first, phrase.german), "prepositional")]
    receiver = somebody(rng, "dat", who)
    return [
        Part(receiver.english, receiver.german, receiver.slot),
        Part(english, phrase.german, phrase.slot),
    ]


def complement(
    rng: Random, role: str, case: str, who: NounPhrase, negated: bool = False, bare: bool = False
) -> NounPhrase:
    """Draw a noun phrase for a role of a verb; PERSON also gives names and pronouns."""
    if role == "PERSON":
        return somebody(rng, case, who)
    if role == "room":
        noun = pick(rng, NOUNS["room"])
        determiner = THE if rng.random() < 0.5 else owning(rng, who)
        return noun_phrase(determiner, suited(rng, noun, 0.2), noun, case)
    return thing(rng, role, case, who, negated, bare)


def event(
    rng: Random,
    who: NounPhrase,
    tense: str = "present",
    *,
    pool: str = "",
    modal: Modal | None = None,
    negated: bool = False,
    when: str = "",
    where: float = 0.25,
    verb: Verb | None = None,
) -> Clause:
    """Draw a clause: somebody does something, maybe with somebody, somewhere, at some time.

    Without `verb`, a verb is drawn from `pool`, by default that of the tense. `when` is the kind
    of time, "" for none. For verbs that allow it, `where` is the probability of a place, and half
    of it that of a companion.
    """
    verb = verb or pick(rng, POOLS[pool or tense])
    parts = complements(rng, verb, who, negated, tense == "liking")
    if verb.english[0] == "travel" and rng.random() < 0.5:
        parts.append(pick(rng, RIDES))
    elif "g" in verb.uses and "mit" not in verb.governs and rng.random() < where / 2:
        companion = somebody(rng, "dat", who)
        parts.append(Part(f"with {companion.english}", f"mit {companion.german}", "manner"))
    if verb.places and rng.random() < where:
        parts.append(place(rng, verb.places))
    if when:
        parts.append(time(rng, when, verb.uses))
    return Clause(who, verb, parts, tense, modal, negated)


def past(rng: Random, who: NounPhrase, timed: float = 0.0, **options: Any) -> Clause:
    """Draw a past event, with a time with probability `timed`."""
    return event(rng, who, "past", when="past" if rng.random() < timed else "", **options)


def future(rng: Random, who: NounPhrase, timed: float = 1.0, **options: Any) -> Clause:
    """Draw a future event (will, werden), with a time with probability `timed`."""
    when = "future" if rng.random() < timed else ""
    return event(rng, who, pool="planned", modal=lexicon.FUTURE, when=when, **options)


def habit(rng: Random, who: NounPhrase) -> Clause:
    """Draw a clause about what somebody does every day, often or never."""
    if rng.random() < 0.5:
        return event(rng, who, when="habit", where=0.15)
    clause = event(rng, who, where=0.15)
    clause.frequency = pick(rng, lexicon.FREQUENCIES)
    return clause


def happening(rng: Random, who: NounPhrase, negated: bool = False) -> Clause:
    """Draw an event in some tense or with a modal verb."""
    chance = rng.random()
    if chance < 0.38:
        return past(rng, who, 0.6, negated=negated)
    if chance < 0.52:
        if negated or chance < 0.44:
            return event(rng, who, pool="state", negated=negated)
        return habit(rng, who)
    if chance < 0.64:
        return event(rng, who, "progressive", negated=negated)
    if chance < 0.76:
        return future(rng, who, negated=negated)
    if chance < 0.82:
        return event(rng, who, "liking", negated=negated)
    modal = pick(rng, lexicon.MODAL_LIST)
    in_past = bool(modal.preterite) and chance > 0.93
    when = ("past" if in_past else "future") if rng.random() < 0.4 else ""
    tense = "past" if in_past else "present"
    options = {"modal": modal, "negated": negated, "when": when, "where": 0.15}
    return event(rng, who, tense, pool="planned", **options)


def state(who: NounPhrase, predicate: Pair | Sequence[str], tense: str = "present") -> Clause:
    """Make a clause with to be and a predicate."""
    return Clause(who, lexicon.NAMED_VERBS["be sein"], [Part(*predicate, "predicate")], tense)


def working_as(who: NounPhrase, profession: Sequence[str]) -> Clause:
    """Say what somebody works as: German has no article, and a form for women."""
    english, man, woman = profession
    article = "an" if english[0] in "aeiou" else "a"
    return state(who, (f"{article} {english}", woman if who.english_row == "she" else man))


IT = NounPhrase("it", "es", "it", "it", "pronoun")
LACKS = [("time", "keine Zeit"), ("money", "kein Geld"), ("a car", "kein Auto")]


def reason(rng: Random, who: NounPhrase, lead: str) -> Clause:
    """Draw a state of somebody or of the weather, for a clause with because, although or if."""
    chance, tense = rng.random(), "present" if lead == "if" else "past"
    if chance < 0.45:
        states = lexicon.STATES[:3] if lead == "although" else lexicon.STATES[:6]
        return state(who, pick(rng, states), tense)
    if lead == "because":
        modal = pick(rng, lexicon.MODAL_LIST[1:3])  # want to, have to
        return event(rng, who, tense, pool="duty", modal=modal, where=0)
    if chance < 0.7:
        rain = pick(rng, ("rain regnen", "snow schneien"))
        return Clause(IT, lexicon.NAMED_VERBS[rain], [], tense)
    parts = [Part(*pick(rng, LACKS), "indefinite")]
    return Clause(who, lexicon.NAMED_VERBS["have haben"], parts, tense, negated=True)
