"""Rules of contrastive pairs about clauses: what longer sentences lose, repeat or mix up.

Like `contrast_rules`, whose phenomena are about words and word order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.measures.contrast_rules import PROGRESSIVE, Sides, sides
from keras_transformer.demo.events import ASKABLE, POOLS, Events
from keras_transformer.demo.inflection import RELATIVE, ordinal
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND, WORDS
from keras_transformer.demo.phrases import GOODS, NOUNS, PEOPLE
from keras_transformer.demo.relatives import relative_clause, with_relative
from keras_transformer.demo.simple import POSTURES
from keras_transformer.demo.syntax import Clause, Phrase, genitive, join, noun_phrase, state

RICH = [verb for verb in POOLS["past"] if verb.governs and verb.places]
ROWS = ("he", "she", "it", "they")


def relative_pronoun(draw: Events) -> Sides:
    """A relative pronoun has its noun's gender: der Maler, mit dem ich tanze, not mit der ich."""
    noun = draw.pick(PEOPLE)
    head = noun_phrase("the", draw.suited(noun, 0.5), noun, "nom", plural=draw.random() < 0.3)
    verb = draw.pick([x for x in ASKABLE if "PERSON" in x.roles])
    clause = draw.past(draw.subject(other=head), 0.3, verb=verb, where=0.1)
    del clause.parts[0]
    forms = {row: RELATIVE[row][1 if verb.governs[-1] == "acc" else 2] for row in ROWS}
    right = forms[head.german_row]
    wrong = draw.pick([x for x in forms.values() if x != right])
    before = verb.governs[0] if len(verb.governs) > 1 else ""
    relatives = (
        clause.subordinate(join(verb.preposition, "whom"), join(before, x)) for x in (right, wrong)
    )
    first, second = (with_relative(head, x) for x in relatives)
    main = draw.happening(first)
    return sides(main.main(), replace(main, subject=second).main())


def agreement_across(draw: Events) -> Sides:
    """The verb has the number of its subject, not that of the clause between them."""
    noun, plural = draw.pick(PEOPLE), draw.random() < 0.5
    head = noun_phrase("the", draw.suited(noun, 0.2), noun, "nom", plural)
    who = with_relative(head, relative_clause(draw, head))
    clause = draw.past(who, 0.3)
    other = "they" if head.german_row != "they" else "he"
    return sides(clause.main(), replace(clause, subject=who._replace(german_row=other)).main())


def feminine_owner(draw: Events) -> Sides:
    """A feminine noun has no s in the genitive: der Königin, not des Königins."""
    noun = draw.pick([x for x in PEOPLE if x.gender == "f"])
    thing = draw.pick(GOODS)
    adjective, how = draw.suited(thing, 0.5), draw.pick(ADJECTIVES_BY_KIND[thing.kind])
    owners = (noun_phrase("the", None, x, "gen") for x in (noun, noun._replace(gender="m")))
    return sides(*(state(genitive(x, adjective, thing, "nom"), how, "past").main() for x in owners))


def omission(draw: Events) -> Sides:
    """Nothing is left out: hat am Montag im Garten ein Buch gelesen, not im Garten ein Buch."""
    clause = _rich(draw)
    left = draw.pick([x for x in clause.parts if x.slot in ("time", "place", "manner")])
    parts = [x for x in clause.parts if x is not left]
    return sides(clause.main(), replace(clause, parts=parts).main())


def repetition(draw: Events) -> Sides:
    """Nothing is said twice: hat Laura am Montag gratuliert, not Laura am Montag Laura."""
    clause = _rich(draw)
    twice = draw.pick(clause.parts)
    slot = "indefinite" if twice.slot in ("pronoun", "time", "definite") else "pronoun"
    parts = [*clause.parts, twice._replace(slot=slot)]
    return sides(clause.main(), replace(clause, parts=parts).main())


def posture(draw: Events) -> Sides:
    """To put depends on the object: a cup is stood (stellen), a coat is laid (legen)."""
    role, _, right = draw.pick(POSTURES[:2])
    only = [x for x in NOUNS[role] if all(x not in NOUNS[y] for y, *_ in POSTURES if y != role)]
    noun, who = draw.pick(only), draw.subject()
    what = noun_phrase("the", draw.suited(noun, 0.2), noun, "acc")
    where = draw.spot("acc", noun)
    wrong = draw.pick([x[2] for x in POSTURES[:2] if x[0] != role])
    return sides(*(Clause(who, x, [what, where], "past").main() for x in (right, wrong)))


def ordinals(draw: Events) -> Sides:
    """The day is that of the date: am einundzwanzigsten März, not am zwölften."""
    clause = draw.past(draw.subject())
    first, second = (draw.whole(1, 31) for _ in range(2))
    month, monat = draw.pick(WORDS["months"])
    days = [
        Phrase(f"on the {ordinal(first)[0]} of {month}", f"am {ordinal(x)[1]}n {monat}", "time")
        for x in (first, second)
    ]
    return sides(*(replace(clause, parts=[*clause.parts, x]).main() for x in days))


def habits(draw: Events) -> Sides:
    """Every Monday is montags, one Monday is am Montag."""
    day, tag = draw.pick(WORDS["weekdays"])
    clause = draw.event(draw.subject(), where=0.15)
    days = [Phrase(f"on {day}s", x, "time") for x in (f"{tag.lower()}s", f"am {tag}")]
    return sides(*(replace(clause, parts=[*clause.parts, x]).main() for x in days))


def progressive(draw: Events) -> Sides:
    """The English progressive is the German present with gerade: liest gerade, not liest."""
    clause = draw.event(draw.subject(), "progressive", verb=draw.pick(PROGRESSIVE))
    return sides(clause.main(), replace(clause, tense="present").main())


def _rich(draw: Events) -> Clause:
    return draw.event(draw.subject(), "past", verb=draw.pick(RICH), when="past", where=1.0)


PHENOMENA: dict[str, Callable[[Events], Sides]] = {
    function.__name__.replace("_", " "): function
    for function in (
        relative_pronoun, agreement_across, feminine_owner, omission, repetition, posture, ordinals,
        habits, progressive,
    )
}  # fmt: skip
