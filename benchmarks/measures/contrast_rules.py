"""Rules that write an English sentence, its German translation, and one that is wrong in one point.

`contrasts` draws from them. A function draws the sides of one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from keras_transformer.demo import lexicon
from keras_transformer.demo.compound import JUDGEMENTS
from keras_transformer.demo.events import ASKABLE, DYNAMIC, NAMED, POOLS, event, state
from keras_transformer.demo.inflection import THE, A, clock, number, possessive
from keras_transformer.demo.phrases import GOODS, NOUNS, PEOPLE, pick, spot, subject, suited
from keras_transformer.demo.relations import JUDGED, SEPARABLE
from keras_transformer.demo.simple import POSTURES
from keras_transformer.demo.syntax import (
    Clause,
    NounPhrase,
    Pair,
    Part,
    as_part,
    attached,
    finish,
    genitive,
    join,
    noun_phrase,
    pronoun_for,
)

PREFIXES = sorted({verb.prefix for verb in DYNAMIC} - {""})
BUY, SAY, COST = NAMED["buy kaufen"], NAMED["say sagen"], NAMED["cost kosten"]
LEAVE, GIVE, KNOW = NAMED["leave abfahren"], NAMED["give geben"], NAMED["know wissen"]
ENDINGS = ("e", "er", "es", "en", "em")
EITHER = {"swim", "jump", "travel", "ride", "drive", "sit", "stand", "lie", "follow"}  # aux. varies
PAST = [  # the perfect with one auxiliary; English "read" may be present or past
    verb
    for verb in DYNAMIC
    if not verb.preterite
    and not verb.reflexive
    and verb.english[0] != verb.english[2]
    and verb.english[0] not in EITHER
]
PROGRESSIVE = [verb for verb in POOLS["progressive"] if not verb.reflexive]
WITH_PREPOSITION = [
    verb
    for verb in ASKABLE
    if len(verb.governs) == 2 and verb.governs[0] != "dat" and "PERSON" not in verb.roles
]


Sides = tuple[str, str, str]  # English, right, wrong


def agreement(rng: Random) -> Sides:
    """The finite verb has the person of the subject: wir haben gerufen, not hat gerufen."""
    clause = _past(rng)
    row = pick(rng, ("I", "you", "he", "we"))
    other = replace(clause, subject=clause.subject._replace(german_row=row))
    return sides(clause.main(), other.main())


def case(rng: Random) -> Sides:
    """The object is in the accusative: den Hut, not der Hut."""
    noun, determiner = pick(rng, [x for x in GOODS if x.gender == "m"]), pick(rng, (THE, A))
    adjective = suited(rng, noun)
    return _bought(rng, *(noun_phrase(determiner, adjective, noun, x) for x in ("acc", "nom")))


def case_after_preposition(rng: Random) -> Sides:
    """She put it onto the table, in the accusative: auf den Tisch, not auf dem Tisch."""
    role, _, lay = pick(rng, POSTURES)
    noun, who = pick(rng, NOUNS[role]), subject(rng)
    what = as_part(noun_phrase(THE, suited(rng, noun, 0.2), noun, "acc"))
    state_of_rng, clauses = rng.getstate(), []
    for where in ("acc", "dat"):
        rng.setstate(state_of_rng)
        clauses.append(Clause(who, lay, [what, spot(rng, where, noun, role == "hang")], "past"))
    return sides(*(clause.main() for clause in clauses))


def gender(rng: Random) -> Sides:
    """The article has the gender of the noun: die Lampe, not das Lampe."""
    noun = pick(rng, GOODS)
    other = noun._replace(gender=pick(rng, [x for x in "mfn" if x != noun.gender]))
    right, wrong = (noun_phrase(THE, None, x) for x in (noun, other))
    how = pick(rng, _judgements(noun))
    return sides(state(right, how, "past").main(), state(wrong, how, "past").main())


def adjective_ending(rng: Random) -> Sides:
    """An adjective is inflected with its article: ein alter Hut, not ein alte Hut."""
    noun, determiner = pick(rng, GOODS), pick(rng, (THE, A))
    adjective = suited(rng, noun, 1.0)
    right = noun_phrase(determiner, adjective, noun, "acc")
    article, inflected, word = right.german.split(" ", 2)
    ending = pick(rng, ENDINGS)
    stem = inflected[: len(inflected) - (2 if inflected[-2:] in ENDINGS else 1)]
    return _bought(rng, right, right._replace(german=f"{article} {stem}{ending} {word}"))


def plural(rng: Random) -> Sides:
    """The hats are several: die Hüte, not der Hut."""
    noun = pick(rng, [x for x in GOODS if x.english_plural])
    adjective = suited(rng, noun)
    return _bought(rng, *(noun_phrase(THE, adjective, noun, "acc", x) for x in (True, False)))


def possession(rng: Random) -> Sides:
    """Her hat is ihr Hut, not sein Hut."""
    noun, row = pick(rng, GOODS), pick(rng, ("he", "she"))
    other = "she" if row == "he" else "he"
    adjective = suited(rng, noun)
    both = (noun_phrase(possessive(row, x), adjective, noun, "acc") for x in (row, other))
    return _bought(rng, *both)


def pronoun_gender(rng: Random) -> Sides:
    """It is er, sie or es, like the noun it stands for: The lamp ... because it: weil sie."""
    noun, who = pick(rng, JUDGED), subject(rng)
    what, how = noun_phrase(THE, None, noun), pick(rng, _judgements(noun))
    bought = Clause(who, BUY, [as_part(noun_phrase(THE, None, noun, "acc"))], "past").main()
    row = pick(rng, [x for x in ("he", "she", "it") if x != what.german_row])
    reasons = (
        state(pronoun_for(x), how, "past").subordinate("because", "weil")
        for x in (what, what._replace(german_row=row))
    )
    right, wrong = (attached(bought, x) for x in reasons)
    return right[0], right[1], wrong[1]


def prefix(rng: Random) -> Sides:
    """The prefix at the end of the clause is that of the verb: ruft ... an, not ruft ... auf."""
    verb = pick(rng, SEPARABLE)
    when = "habit" if "h" in verb.uses else ""
    tense = "present" if when else "progressive"
    clause = event(rng, subject(rng), tense, when=when, verb=verb)
    other = verb._replace(prefix=pick(rng, PREFIXES))
    return sides(clause.main(), replace(clause, verb=other).main())


def auxiliary(rng: Random) -> Sides:
    """The perfect has haben or sein: ist gegangen, not hat gegangen."""
    clause = _past(rng)
    other = clause.verb._replace(with_sein=not clause.verb.with_sein)
    return sides(clause.main(), replace(clause, verb=other).main())


def tense(rng: Random) -> Sides:
    """The past is the perfect: hat gelacht, not lacht."""
    clause = _past(rng)
    return sides(clause.main(), replace(clause, tense="present").main())


def verb_last(rng: Random) -> Sides:
    """The finite verb ends a subordinate clause: dass er gelacht hat, not dass er hat gelacht."""
    who, clause = subject(rng), _past(rng)
    say = Clause(who, SAY, []).main()
    english, right = attached(say, clause.subordinate("that", "dass"))
    _, second = clause.main()
    return english, right, attached(say, ("", f"dass {second}"))[1]


def verb_second(rng: Random) -> Sides:
    """The finite verb is second, whatever is first: Gestern hat er, not Gestern er hat."""
    clause, front = _past(rng), Part(*pick(rng, lexicon.PAST_TIMES))
    _, plain = clause.main()
    return sides(clause.main(front), ("", join(front.german, plain)))


def negation(rng: Random) -> Sides:
    """A negated clause has nicht: hat nicht gelacht, not hat gelacht."""
    while True:
        clause = event(rng, subject(rng), "past", verb=pick(rng, PAST), negated=True)
        right, wrong = clause.main(), replace(clause, negated=False).main()
        if " nicht" in right[1] and "kein" not in right[1]:
            return sides(right, wrong)


def numerals(rng: Random) -> Sides:
    """German has the ones first: twenty-three is dreiundzwanzig, not zweiunddreißig."""
    noun, ten, one = pick(rng, GOODS), 2 + int(rng.random() * 8), 2 + int(rng.random() * 8)
    what, (english, german) = noun_phrase(THE, suited(rng, noun), noun), number(10 * ten + one)
    prices = (
        Part(f"{english} euros", f"{x} Euro", "indefinite")
        for x in (german, number(10 * one + ten)[1])
    )
    return sides(*(Clause(what, COST, [price]).main() for price in prices))


def clock_times(rng: Random) -> Sides:
    """German counts half hours towards the next one: half past seven is halb acht."""
    noun, (english, _, german) = pick(rng, NOUNS["leave"]), pick(rng, lexicon.TOWNS)
    what = noun_phrase(THE, suited(rng, noun, 0.5), noun)
    what = NounPhrase(f"{what.english} to {english}", f"{what.german} {german}", *what[2:])
    hour = 1 + int(rng.random() * 12)
    at, um = clock(hour, 30)
    wrong = clock((hour - 2) % 12 + 1, 30)[1]
    return sides(*(Clause(what, LEAVE, [Part(at, x, "time")]).main() for x in (um, wrong)))


def feminine(rng: Random) -> Sides:
    """A woman's profession is feminine: Anna ist Ärztin, not Arzt."""
    who = subject(rng)
    while who.english_row not in ("he", "she"):
        who = subject(rng)
    english, *forms = pick(rng, lexicon.PROFESSIONS)
    article = "an" if english[0] in "aeiou" else "a"
    both = forms[::-1] if who.english_row == "she" else forms
    return sides(*(state(who, (f"{article} {english}", x)).main() for x in both))


def dative(rng: Random) -> Sides:
    """Who gets something is in the dative: dem Arzt, not den Arzt."""
    noun, given = pick(rng, [x for x in PEOPLE if x.gender == "m"]), pick(rng, NOUNS["give"])
    adjective, who = suited(rng, noun, 0.5), subject(rng)
    what = as_part(noun_phrase(A, suited(rng, given), given, "acc"))
    receivers = (as_part(noun_phrase(THE, adjective, noun, x)) for x in ("dat", "acc"))
    return sides(*(Clause(who, GIVE, [x, what], "past").main() for x in receivers))


def genitive_ending(rng: Random) -> Sides:
    """An owner has an s: der Hut des Arztes, not des Arzt."""
    noun = pick(rng, [x for x in PEOPLE if x.gender == "m" and not x.weak])
    owner = noun_phrase(THE, suited(rng, noun), noun, "gen")
    start = owner.german[: owner.german.rindex(" ")]
    thing = pick(rng, GOODS)
    adjective, how = suited(rng, thing), pick(rng, _judgements(thing))
    owners = (owner, owner._replace(german=f"{start} {noun.german}"))
    return sides(*(state(genitive(x, adjective, thing, "nom"), how, "past").main() for x in owners))


def question_word(rng: Random) -> Sides:
    """The question word has the preposition of the verb: Worauf ... gefreut, not Woran."""
    verb = pick(rng, WITH_PREPOSITION)
    clause = event(rng, subject(rng), "past", verb=verb)
    clause.parts[0] = Part(verb.preposition, "", "prepositional")
    other = pick(rng, [x.governs[0] for x in WITH_PREPOSITION])
    fronts = (Part("what", f"wo{'r' * (x[0] in 'aü')}{x}") for x in (verb.governs[0], other))
    return sides(*(clause.main(x, question=True) for x in fronts), "?")


def agreement_last(rng: Random) -> Sides:
    """The last verb of a subordinate clause has its person, too: ob du lernst, not lernen."""
    who, row = subject(rng), pick(rng, ("I", "you", "he", "we"))
    clause = event(rng, subject(rng), "progressive", verb=pick(rng, PROGRESSIVE))
    other = replace(clause, subject=clause.subject._replace(german_row=row))
    know = Clause(who, KNOW, [], modal=lexicon.MODAL_LIST[1]).main()
    subs = (x.subordinate("whether", "ob") for x in (clause, other))
    (english, right), (_, wrong) = (attached(know, x) for x in subs)
    return english, right, wrong


def modal_tense(rng: Random) -> Sides:
    """Had to is musste, not muss."""
    modal = pick(rng, [x for x in lexicon.MODAL_LIST if x.preterite])
    clause = event(rng, subject(rng), "past", modal=modal, pool="planned")
    return sides(clause.main(), replace(clause, tense="present").main())


def _past(rng):
    return event(rng, subject(rng), "past", verb=pick(rng, PAST))


def _judgements(noun):
    return [(x.english, x.german) for row in JUDGEMENTS[noun.kind] for x in row] or [("new", "neu")]


def _bought(rng, right, wrong):
    who = subject(rng)
    return sides(*(Clause(who, BUY, [as_part(x)], "past").main() for x in (right, wrong)))


def sides(right: Pair, wrong: Pair, mark: str = ".") -> Sides:
    """Make sentences of a clause and of the same clause with a wrong translation."""
    english, german = finish(right, mark)
    return english, german, finish((english, wrong[1]), mark)[1]


PHENOMENA: dict[str, Callable[[Random], Sides]] = {
    function.__name__.replace("_", " "): function
    for function in (
        agreement, case, case_after_preposition, gender, adjective_ending, plural, possession,
        pronoun_gender, prefix, auxiliary, tense, verb_last, verb_second, negation, numerals,
        clock_times, feminine, dative, genitive_ending, question_word, agreement_last,
        modal_tense,
    )
}  # fmt: skip
