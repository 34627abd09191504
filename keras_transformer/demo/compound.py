"""Patterns of sentences of two clauses: a function draws one and returns it in both languages.

German shows verb-final order, zu-infinitives, and pronouns that follow the gender of a noun in
the other clause. RULES lists the patterns with their weights.
"""

from __future__ import annotations

from random import Random

from keras_transformer.demo import lexicon
from keras_transformer.demo.events import (
    ADJECTIVES,
    NAMED,
    event,
    future,
    happening,
    past,
    reason,
    state,
)
from keras_transformer.demo.inflection import THE, THIS, A
from keras_transformer.demo.phrases import (
    GOODS,
    NOUNS,
    owning,
    pick,
    somebody,
    subject,
    suited,
)
from keras_transformer.demo.questions import questioned
from keras_transformer.demo.relatives import person_related, thing_related, used
from keras_transformer.demo.simple import priced
from keras_transformer.demo.syntax import (
    DU,
    Clause,
    Pair,
    Part,
    Rules,
    as_part,
    attached,
    finish,
    join,
    noun_phrase,
    pronoun_for,
)

JUDGEMENTS = {  # charms and flaws of each kind of thing
    kind: [[a for a in suiting if a.english in words] for words in (lexicon.CHARMS, lexicon.FLAWS)]
    for kind, suiting in ADJECTIVES.items()
}


def ordered(rng: Random, main: Clause, lead: Pair, sub: Clause, first: float = 0.4) -> Pair:
    """Join main and subordinate clause; in front, the latter counts as the first element."""
    if rng.random() >= first:
        return attached(main.main(), sub.subordinate(*lead))
    if sub.subject == pronoun_for(main.subject):  # the noun goes into the first clause
        main.subject, sub.subject = sub.subject, main.subject
    english, german = sub.subordinate(*lead)
    return finish(main.main(Part(english + ",", german + ",")))


def reasoned(rng: Random) -> Pair:
    """Anna went home because she was tired. ..., weil sie müde war."""
    who = subject(rng)
    lead = ("because", "weil") if rng.random() < 0.6 else ("although", "obwohl")
    main = past(rng, who, 0.3, pool="planned")
    return ordered(rng, main, lead, reason(rng, pronoun_for(who), lead[0]))


def conditional(rng: Random) -> Pair:
    """If it rains, Anna will stay in Berlin. Wenn es regnet, wird Anna in Berlin bleiben."""
    who = subject(rng)
    cause = reason(rng, pronoun_for(who), "if")
    return ordered(rng, future(rng, who, timed=0), ("if", "wenn"), cause, 0.6)


def meanwhile(rng: Random) -> Pair:
    """While Anna cooked the soup, Paul slept; after he had slept, he called Eva."""
    who, chance = subject(rng), rng.random()
    if chance < 0.25:
        other = past(rng, subject(rng, False, who), pool="progressive", where=0.1)
        main = past(rng, who, pool="progressive", where=0.1)
        return ordered(rng, main, ("while", "während"), other)
    if chance < 0.45:
        other = past(rng, subject(rng, False, who), pool="clock", where=0)
        return ordered(rng, past(rng, who), ("when", "als"), other)
    main, same = past(rng, who, 0.2, where=0.1), pronoun_for(who)
    if chance < 0.72:
        return ordered(rng, main, ("before", "bevor"), past(rng, same, where=0.1))
    return ordered(rng, main, ("after", "nachdem"), event(rng, same, "pluperfect", where=0.1))


SAYING = ["say sagen", "think glauben", "know wissen", "hope hoffen"]
IMPERSONAL = lexicon.rows("""
it is good | es ist gut
it is a pity | es ist schade
it is not true | es ist nicht wahr
""")


def reported(rng: Random) -> Pair:
    """Peter says that Anna is looking for her key. Peter sagt, dass Anna ... sucht."""
    who, chance = subject(rng), rng.random()
    other = pronoun_for(who) if rng.random() < 0.25 else subject(rng, other=who)
    if chance < 0.4:
        main, lead = Clause(who, NAMED[pick(rng, SAYING)], []).main(), ("that", "dass")
    elif chance < 0.52:
        main, lead = tuple(pick(rng, IMPERSONAL)), ("that", "dass")
    elif chance < 0.6:
        main, lead = Clause(who, NAMED["hear hören"], [], "past").main(), ("that", "dass")
        other = subject(rng, other=who)
    elif chance < 0.75:
        clause = Clause(who, NAMED["know wissen"], [], modal=lexicon.MODAL_LIST[1])
        main, lead = clause.main(), ("whether", "ob")
        other = subject(rng, other=who)
    elif chance < 0.87:
        clause, front = questioned(rng, other)
        main = Clause(who, NAMED["know wissen"], [], negated=True).main()
        return attached(main, clause.subordinate(front.english, front.german))
    else:
        clause, front = questioned(rng, subject(rng, other=DU))
        main = Clause(DU, NAMED["know wissen"], []).main(question=True)
        return attached(main, clause.subordinate(front.english, front.german), "?")
    return attached(main, happening(rng, other).subordinate(*lead))


def resumed(rng: Random) -> Pair:
    """The lamp is old, but it still works. Die Lampe ist alt, aber sie funktioniert noch."""
    chance, noun = rng.random(), pick(rng, GOODS)
    if chance < 0.25:
        noun = pick(rng, NOUNS["repair"])
    what = noun_phrase(pick(rng, (THE, THIS, owning(rng, None))), None, noun)
    it, (charms, flaws) = pronoun_for(what), JUDGEMENTS[noun.kind]
    if chance < 0.25:
        works = Clause(it, NAMED["work funktionieren"], [], frequency=("still", "noch"))
        return contrasted(state(what, pick(rng, (("old", "alt"), ("cheap", "billig")))), works)
    if chance < 0.45:
        price = priced(rng, it, ("only", "nur"))
        good = [adjective for adjective in charms if adjective.english != "cheap"]
        return contrasted(state(what, pick(rng, good)[:2]), price)
    clause = used(rng, noun, subject(rng), pronoun_for(what, "acc"))
    adjective = pick(rng, flaws if clause.verb.english[0] in lexicon.WANTING else charms + flaws)
    return contrasted(state(what, adjective[:2], "past"), clause)


def judged(rng: Random) -> Pair:
    """Anna bought the lamp because it was cheap. When Anna saw the lamp, she bought it."""
    noun, who = pick(rng, GOODS), subject(rng)
    what = noun_phrase(pick(rng, (THE, THIS)), suited(rng, noun, 0.1), noun, "acc")
    if rng.random() < 0.35:
        see = NAMED["see sehen"]
        clause = used(rng, noun, pronoun_for(who), pronoun_for(what, "acc"))
        seeing = Clause(who, see, [as_part(what, see)], "past")
        return ordered(rng, clause, ("when", "als"), seeing, 1)
    clause, because = used(rng, noun, who, what), rng.random() < 0.5
    # people buy because of charms or despite flaws, and sell because of flaws or despite charms
    adjectives = JUDGEMENTS[noun.kind][because != (clause.verb.english[0] in lexicon.WANTING)]
    adjective = pick(rng, [a for a in adjectives if a.english not in what.english] or adjectives)
    lead = ("because", "weil") if because else ("although", "obwohl")
    return ordered(rng, clause, lead, state(pronoun_for(what), adjective[:2], "past"), 0)


def contrasted(first: Clause, second: Clause) -> Pair:
    """Join two clauses: ..., but ..."""
    (english, german), (but, aber) = first.main(), second.main()
    return finish((f"{english}, but {but}", f"{german}, aber {aber}"))


def handed_on(rng: Random) -> Pair:
    """Anna bought a hat and gave it to her aunt. Anna hat einen Hut gekauft und ihn ihrer ..."""
    who, bought = subject(rng), rng.random() < 0.6
    noun = pick(rng, NOUNS[pick(rng, ("give", "borrow")) if bought else "small"])
    receiver, adjective = somebody(rng, "dat", who), suited(rng, noun)
    what = noun_phrase(A if bought else THE, adjective, noun, "acc")
    verb = NAMED[pick(rng, ("give geben", "send schicken", "show zeigen"))]
    to = Part(f"to {receiver.english}", receiver.german, receiver.slot)
    parts = [as_part(pronoun_for(what, "acc")), to]
    if bought:
        first = Clause(who, NAMED["buy kaufen"], [as_part(what)], "past")
        return coordinated(first, Clause(who, verb, parts, "past"))
    finding = Clause(who, NAMED["find finden"], [as_part(what)])
    giving = Clause(pronoun_for(who), verb, parts, modal=lexicon.FUTURE)
    return ordered(rng, giving, ("if", "wenn"), finding, 1)


def coordinated(first: Clause, second: Clause) -> Pair:
    """Join two past actions of one subject; German repeats the auxiliary only when it changes."""
    (english, german), (finite, end, _) = first.main(), second.german_verb()
    reflexive, middle = second.german_parts()
    if finite == first.german_verb()[0]:
        finite = ""
    rest = join(*second.english_parts(second.english_verb(False)[1]))
    return finish((f"{english} and {rest}", join(german, "und", finite, reflexive, *middle, end)))


def joined(rng: Random) -> Pair:
    """Eva went to the market and bought twelve eggs. Eva ist ... gegangen und hat ... gekauft."""
    who, pool = subject(rng), pick(rng, ("going", "clock"))
    return coordinated(
        past(rng, who, 0.4, pool=pool, where=0), past(rng, who, pool="done", where=0.1)
    )


INTENDING = [
    ("try versuchen", "progressive"),
    ("try versuchen", "past"),
    ("forget vergessen", "past"),
    ("promise versprechen", "past"),
    ("decide beschließen", "past"),
    ("plan planen", "present"),
    ("hope hoffen", "present"),
]


def intended(rng: Random) -> Pair:
    """Anna forgot to call her aunt. Anna hat vergessen, ihre Tante anzurufen."""
    who, (key, tense) = subject(rng), pick(rng, INTENDING)
    action = event(rng, who, pool="planned", where=0.15)
    return attached(Clause(who, NAMED[key], [], tense).main(), action.infinitive())


def purposed(rng: Random) -> Pair:
    """Paul went to the station to meet Eva. Paul ist zum Bahnhof gegangen, um Eva zu treffen."""
    who = subject(rng)
    going = past(rng, who, 0.3, pool="going", where=0)
    return attached(going.main(), event(rng, who, pool="purpose", where=0).infinitive(um=True))


RULES: Rules = (
    (reasoned, 6), (conditional, 4), (meanwhile, 6), (reported, 7), (person_related, 7),
    (thing_related, 4), (resumed, 4), (judged, 4), (handed_on, 4), (joined, 4), (intended, 4),
    (purposed, 3),
)  # fmt: skip
