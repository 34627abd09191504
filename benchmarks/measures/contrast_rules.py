"""Rules that write an English sentence, its German translation, and one that is wrong in one point.

`contrasts` draws from them. A function draws the sides of one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from keras_transformer.demo.events import ASKABLE, DYNAMIC, POOLS, Events
from keras_transformer.demo.inflection import Pair, clock, number, possessive, with_article
from keras_transformer.demo.lexicon import (
    ADJECTIVES_BY_KIND,
    MODAL_LIST,
    NAMED_VERBS,
    WANT,
    WORDS,
)
from keras_transformer.demo.phrases import GOODS, NOUNS, PEOPLE
from keras_transformer.demo.questions import with_wo
from keras_transformer.demo.relations import COUNTED, SEPARABLE
from keras_transformer.demo.simple import POSTURES
from keras_transformer.demo.syntax import (
    Clause,
    Phrase,
    attached,
    finish,
    genitive,
    join,
    noun_phrase,
    pronoun_for,
    state,
)

PREFIXES = sorted({verb.prefix for verb in DYNAMIC} - {""})
BUY, SAY, COST = NAMED_VERBS["buy kaufen"], NAMED_VERBS["say sagen"], NAMED_VERBS["cost kosten"]
GIVE, KNOW = NAMED_VERBS["give geben"], NAMED_VERBS["know wissen"]
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


def agreement(draw: Events) -> Sides:
    """The finite verb has the person of the subject: wir haben gerufen, not hat gerufen."""
    clause = _past(draw)
    row = draw.pick(("I", "you", "he", "we"))
    other = replace(clause, subject=clause.subject._replace(german_row=row))
    return sides(clause.main(), other.main())


def case(draw: Events) -> Sides:
    """The object is in the accusative: den Hut, not der Hut."""
    noun, determiner = draw.pick([x for x in GOODS if x.gender == "m"]), draw.pick(("the", "a"))
    adjective = draw.suited(noun)
    return _bought(draw, *(noun_phrase(determiner, adjective, noun, x) for x in ("acc", "nom")))


def case_after_preposition(draw: Events) -> Sides:
    """She put it onto the table, in the accusative: auf den Tisch, not auf dem Tisch."""
    role, _, lay = draw.pick(POSTURES)
    noun, who = draw.pick(NOUNS[role]), draw.subject()
    what = noun_phrase("the", draw.suited(noun, 0.2), noun, "acc")
    state_of_draw, clauses = draw.getstate(), []
    for where in ("acc", "dat"):
        draw.setstate(state_of_draw)
        clauses.append(Clause(who, lay, [what, draw.spot(where, noun, role == "hang")], "past"))
    return sides(*(clause.main() for clause in clauses))


def gender(draw: Events) -> Sides:
    """The article has the gender of the noun: die Lampe, not das Lampe."""
    noun = draw.pick(GOODS)
    other = noun._replace(gender=draw.pick([x for x in "mfn" if x != noun.gender]))
    right, wrong = (noun_phrase("the", None, x) for x in (noun, other))
    how = draw.pick(ADJECTIVES_BY_KIND[noun.kind])
    return sides(state(right, how, "past").main(), state(wrong, how, "past").main())


def adjective_ending(draw: Events) -> Sides:
    """An adjective is inflected with its article: ein alter Hut, not ein alte Hut."""
    noun, determiner = draw.pick(GOODS), draw.pick(("the", "a"))
    adjective = draw.suited(noun, 1.0)
    right = noun_phrase(determiner, adjective, noun, "acc")
    article, inflected, word = right.german.split(" ", 2)
    ending = draw.pick(ENDINGS)
    stem = inflected[: len(inflected) - (2 if inflected[-2:] in ENDINGS else 1)]
    return _bought(draw, right, right._replace(german=f"{article} {stem}{ending} {word}"))


def plural(draw: Events) -> Sides:
    """Several hats are plural: die Hüte, not der Hut."""
    noun = draw.pick([x for x in GOODS if x.english_plural])
    adjective = draw.suited(noun)
    return _bought(draw, *(noun_phrase("the", adjective, noun, "acc", x) for x in (True, False)))


def possession(draw: Events) -> Sides:
    """Her hat is ihr Hut, not sein Hut."""
    noun, row = draw.pick(GOODS), draw.pick(("he", "she"))
    other = "she" if row == "he" else "he"
    adjective = draw.suited(noun)
    objects = (noun_phrase(possessive(row, x), adjective, noun, "acc") for x in (row, other))
    return _bought(draw, *objects)


def pronoun_gender(draw: Events) -> Sides:
    """It is er, sie or es, like the noun it stands for: The lamp ... because it: weil sie."""
    noun, who = draw.pick(COUNTED), draw.subject()
    what, how = noun_phrase("the", None, noun), draw.pick(ADJECTIVES_BY_KIND[noun.kind])
    bought = Clause(who, BUY, [noun_phrase("the", None, noun, "acc")], "past").main()
    row = draw.pick([x for x in ("he", "she", "it") if x != what.german_row])
    reasons = (
        state(pronoun_for(x), how, "past").subordinate("because", "weil")
        for x in (what, what._replace(german_row=row))
    )
    right, wrong = (attached(bought, x) for x in reasons)
    return right[0], right[1], wrong[1]


def prefix(draw: Events) -> Sides:
    """The prefix at the clause's end belongs to the verb: ruft ... an, not ruft ... auf."""
    verb = draw.pick(SEPARABLE)
    clause = draw.event(draw.subject(), when="habit", verb=verb)
    other = verb._replace(prefix=draw.pick(PREFIXES))
    return sides(clause.main(), replace(clause, verb=other).main())


def auxiliary(draw: Events) -> Sides:
    """The perfect has haben or sein: ist gegangen, not hat gegangen."""
    clause = _past(draw)
    other = clause.verb._replace(with_sein=not clause.verb.with_sein)
    return sides(clause.main(), replace(clause, verb=other).main())


def tense(draw: Events) -> Sides:
    """The past is the perfect: hat gelacht, not lacht."""
    clause = _past(draw)
    return sides(clause.main(), replace(clause, tense="present").main())


def verb_last(draw: Events) -> Sides:
    """The finite verb ends a subordinate clause: dass er gelacht hat, not dass er hat gelacht."""
    who, clause = draw.subject(), _past(draw)
    say = Clause(who, SAY, []).main()
    english, right = attached(say, clause.subordinate("that", "dass"))
    _, second = clause.main()
    return english, right, attached(say, ("", f"dass {second}"))[1]


def verb_second(draw: Events) -> Sides:
    """The finite verb is second, whatever is first: Gestern hat er, not Gestern er hat."""
    clause, front = _past(draw), Phrase(*draw.pick(WORDS["past_times"]))
    _, plain = clause.main()
    return sides(clause.main(front), ("", join(front.german, plain)))


def negation(draw: Events) -> Sides:
    """A negated clause has nicht: hat nicht gelacht, not hat gelacht."""
    while True:
        clause = draw.event(draw.subject(), "past", verb=draw.pick(PAST), negated=True)
        right, wrong = clause.main(), replace(clause, negated=False).main()
        if " nicht" in right[1] and "kein" not in right[1]:
            return sides(right, wrong)


def numerals(draw: Events) -> Sides:
    """German has the ones first: twenty-three is dreiundzwanzig, not zweiunddreißig."""
    noun, tens, ones = draw.pick(GOODS), draw.whole(2, 9), draw.whole(2, 9)
    what, (english, german) = noun_phrase("the", draw.suited(noun), noun), number(10 * tens + ones)
    prices = (
        Phrase(f"{english} euros", f"{x} Euro", "indefinite")
        for x in (german, number(10 * ones + tens)[1])
    )
    return sides(*(Clause(what, COST, [price]).main() for price in prices))


def clock_times(draw: Events) -> Sides:
    """German counts half hours towards the next one: half past seven is halb acht."""
    clause, hour = _past(draw), draw.whole(1, 12)
    (at, um), wrong = clock(hour, 30), clock((hour - 2) % 12 + 1, 30)[1]
    times = (Phrase(at, x, "time") for x in (um, wrong))
    return sides(*(replace(clause, parts=[*clause.parts, x]).main() for x in times))


def feminine(draw: Events) -> Sides:
    """A woman's profession is feminine: Anna ist Ärztin, not Arzt."""
    who = draw.subject()
    while who.english_row not in ("he", "she"):
        who = draw.subject()
    english, *forms = draw.pick(WORDS["professions"])
    professions = forms[::-1] if who.english_row == "she" else forms
    return sides(*(state(who, (with_article(english), x)).main() for x in professions))


def dative(draw: Events) -> Sides:
    """Who gets something is in the dative: dem Arzt, not den Arzt."""
    noun, gift = draw.pick([x for x in PEOPLE if x.gender == "m"]), draw.pick(NOUNS["give"])
    adjective, who = draw.suited(noun, 0.5), draw.subject()
    what = noun_phrase("a", draw.suited(gift), gift, "acc")
    receivers = (noun_phrase("the", adjective, noun, x) for x in ("dat", "acc"))
    return sides(*(Clause(who, GIVE, [x, what], "past").main() for x in receivers))


def genitive_ending(draw: Events) -> Sides:
    """An owner has an s: der Hut des Arztes, not des Arzt."""
    noun = draw.pick([x for x in PEOPLE if x.gender == "m" and not x.weak])
    owner = noun_phrase("the", draw.suited(noun), noun, "gen")
    start = owner.german[: owner.german.rindex(" ")]
    thing = draw.pick(GOODS)
    adjective, how = draw.suited(thing), draw.pick(ADJECTIVES_BY_KIND[thing.kind])
    owners = (owner, owner._replace(german=f"{start} {noun.german}"))
    return sides(*(state(genitive(x, adjective, thing, "nom"), how, "past").main() for x in owners))


def question_word(draw: Events) -> Sides:
    """The question word has the preposition of the verb: Worauf ... gefreut, not Woran."""
    verb = draw.pick(WITH_PREPOSITION)
    clause = draw.event(draw.subject(), "past", verb=verb)
    clause.parts[0] = Phrase(verb.preposition, "", "prepositional")
    other = draw.pick([x.governs[0] for x in WITH_PREPOSITION])
    fronts = (Phrase("what", with_wo(x)) for x in (verb.governs[0], other))
    return sides(*(clause.main(x, question=True) for x in fronts), "?")


def agreement_last(draw: Events) -> Sides:
    """The last verb of a subordinate clause has its person, too: ob du lernst, not lernen."""
    who, row = draw.subject(), draw.pick(("I", "you", "he", "we"))
    clause = draw.event(draw.subject(), "progressive", verb=draw.pick(PROGRESSIVE))
    other = replace(clause, subject=clause.subject._replace(german_row=row))
    know = Clause(who, KNOW, [], modal=WANT).main()
    subs = (x.subordinate("whether", "ob") for x in (clause, other))
    (english, right), (_, wrong) = (attached(know, x) for x in subs)
    return english, right, wrong


def modal_tense(draw: Events) -> Sides:
    """Had to is musste, not muss."""
    modal = draw.pick([x for x in MODAL_LIST if x.preterite])
    clause = draw.event(draw.subject(), "past", modal=modal, pool="planned")
    return sides(clause.main(), replace(clause, tense="present").main())


def _past(draw: Events) -> Clause:
    return draw.event(draw.subject(), "past", verb=draw.pick(PAST))


def _bought(draw: Events, right: Phrase, wrong: Phrase) -> Sides:
    who = draw.subject()
    return sides(*(Clause(who, BUY, [x], "past").main() for x in (right, wrong)))


def sides(right: Pair, wrong: Pair, mark: str = ".") -> Sides:
    """Make sentences of a clause and of the same clause with a wrong translation."""
    english, german = finish(right, mark)
    return english, german, finish((english, wrong[1]), mark)[1]


PHENOMENA: dict[str, Callable[[Events], Sides]] = {
    function.__name__.replace("_", " "): function
    for function in (
        agreement, case, case_after_preposition, gender, adjective_ending, plural, possession,
        pronoun_gender, prefix, auxiliary, tense, verb_last, verb_second, negation, numerals,
        clock_times, feminine, dative, genitive_ending, question_word, agreement_last,
        modal_tense,
    )
}  # fmt: skip
