"""Patterns of sentences with two clauses: functions that draw a sentence in both languages.

They show German verb-final order, zu-infinitives, and pronouns that follow the gender of a noun in
the other clause. RULES lists the patterns with their weights.
"""

from __future__ import annotations

from keras_transformer.demo import syntax
from keras_transformer.demo.events import Events
from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND, NAMED_VERBS, WANT
from keras_transformer.demo.phrases import GOODS, NOUNS
from keras_transformer.demo.questions import questioned
from keras_transformer.demo.relatives import used
from keras_transformer.demo.syntax import Clause, Phrase, attached, noun_phrase, pronoun_for, state


def ordered(draw: Events, main: Clause, lead: Pair, sub: Clause, first: float = 0.4) -> Pair:
    """Join a main clause and a subordinate clause, which begins with the conjunction `lead`.

    The subordinate clause comes first with the probability `first`. It is then the first element of
    the German main clause, which continues with the verb.
    """
    if draw.random() >= first:
        return attached(main.main(), sub.subordinate(*lead))
    if sub.subject == pronoun_for(main.subject):  # a noun must precede its pronoun
        main.subject, sub.subject = sub.subject, main.subject
    english, german = sub.subordinate(*lead)
    return main.sentence(Phrase(english + ",", german + ","))


def reasoned(draw: Events) -> Pair:
    """Draw a sentence with because, although or if: Anna went home because she was tired."""
    leads = ("because", "weil"), ("because", "weil"), ("although", "obwohl"), ("if", "wenn")
    who, lead = draw.subject(), draw.pick(leads)
    cause = draw.reason(pronoun_for(who), lead[0])
    if lead[0] == "if":
        return ordered(draw, draw.future(who, timed=0), lead, cause, 0.6)
    return ordered(draw, draw.past(who, 0.3, pool="planned"), lead, cause)


def judged(draw: Events) -> Pair:
    """Draw an action and a quality of its object: Anna bought the lamp because it was cheap."""
    noun, who = draw.pick(GOODS), draw.subject()
    what = noun_phrase(draw.pick(("the", "this")), draw.suited(noun, 0.1), noun, "acc")
    lead = draw.pick((("because", "weil"), ("although", "obwohl")))
    was = state(pronoun_for(what), draw.pick(ADJECTIVES_BY_KIND[noun.kind]), "past")
    return attached(used(draw, noun, who, what).main(), was.subordinate(*lead))


def meanwhile(draw: Events) -> Pair:
    """Draw two past events related in time: While Anna cooked the soup, Paul slept."""
    who, chance = draw.subject(), draw.random()
    if chance < 0.45:
        lead, pool = (("when", "als"), "clock")
        if chance < 0.25:
            lead, pool = ("while", "während"), "progressive"
        other = draw.past(draw.subject(False, who), pool=pool, where=0.1)
        return ordered(draw, draw.past(who, pool="progressive", where=0.1), lead, other)
    main, same = draw.past(who, 0.2, where=0.1), pronoun_for(who)
    if chance < 0.72:
        return ordered(draw, main, ("before", "bevor"), draw.past(same, where=0.1))
    return ordered(draw, main, ("after", "nachdem"), draw.event(same, "pluperfect", where=0.1))


def reported(draw: Events) -> Pair:
    """Draw indirect speech or an indirect question: Peter says that Anna is looking for her key."""
    who, chance = draw.subject(), draw.random()
    other, know = draw.subject(other=who), NAMED_VERBS["know wissen"]
    if chance < 0.55:
        verb = draw.pick(("say sagen", "think glauben", "know wissen", "hope hoffen"))
        said = draw.happening(pronoun_for(who) if draw.random() < 0.4 else other)
        return attached(Clause(who, NAMED_VERBS[verb], []).main(), said.subordinate("that", "dass"))
    if chance < 0.75:
        asking = Clause(who, know, [], modal=WANT).main()
        return attached(asking, draw.happening(other).subordinate("whether", "ob"))
    clause, front = questioned(draw, draw.subject(other=syntax.DU))
    asking = Clause(syntax.DU, know, []).main(question=True)
    return attached(asking, clause.subordinate(front.english, front.german), "?")


def resumed(draw: Events) -> Pair:
    """Draw a contrast about one thing: The lamp is old, but it still works."""
    repaired = draw.random() < 0.25
    noun = draw.pick(NOUNS["repair"] if repaired else GOODS)
    what = noun_phrase(draw.pick(("the", "this", draw.owning(None))), None, noun)
    if repaired:
        work, still = NAMED_VERBS["work funktionieren"], ("still", "noch")
        works = Clause(pronoun_for(what), work, [], frequency=still)
        return contrasted(state(what, draw.pick((("old", "alt"), ("cheap", "billig")))), works)
    clause = used(draw, noun, draw.subject(), pronoun_for(what, "acc"))
    adjective = draw.pick(ADJECTIVES_BY_KIND[noun.kind])
    return contrasted(state(what, adjective, "past"), clause)


def contrasted(first: Clause, second: Clause) -> Pair:
    """Join two clauses by "but" and "aber"."""
    (english, german), (but, aber) = first.main(), second.main()
    return syntax.finish((f"{english}, but {but}", f"{german}, aber {aber}"))


def handed_on(draw: Events) -> Pair:
    """Draw a purchase that somebody gets or is shown: Anna bought a hat and gave it to her aunt."""
    who, noun = draw.subject(), draw.pick(NOUNS[draw.pick(("give", "borrow"))])
    what, receiver = noun_phrase("a", draw.suited(noun), noun, "acc"), draw.somebody("dat", who)
    bought = Clause(who, NAMED_VERBS["buy kaufen"], [what], "past")
    verb = NAMED_VERBS[draw.pick(("give geben", "send schicken", "show zeigen"))]
    parts = [pronoun_for(what, "acc"), receiver.after("to")]
    return coordinated(bought, Clause(who, verb, parts, "past"))


def coordinated(first: Clause, second: Clause) -> Pair:
    """Join two past actions of one subject; German repeats the auxiliary only if it differs."""
    (english, german), (finite, end, _) = first.main(), second.german_verb()
    reflexive, middle = second.german_parts()
    if finite == first.german_verb()[0]:
        finite = ""
    rest = syntax.join(*second.english_parts(second.english_verb(False)[1]))
    und = syntax.join(german, "und", finite, reflexive, *middle, end)
    return syntax.finish((f"{english} and {rest}", und))


def joined(draw: Events) -> Pair:
    """Draw two past actions of one person: Eva went to the market and bought twelve eggs."""
    who, pool = draw.subject(), draw.pick(("going", "clock"))
    first = draw.past(who, 0.4, pool=pool, where=0)
    return coordinated(first, draw.past(who, pool="done", where=0.1))


def intended(draw: Events) -> Pair:
    """Draw an intention with an infinitive: Anna forgot to call her aunt."""
    who, verbs = draw.subject(), ("try versuchen", "forget vergessen", "decide beschließen")
    intending = Clause(who, NAMED_VERBS[draw.pick(verbs)], [], "past")
    return attached(intending.main(), draw.event(who, pool="planned", where=0.15).infinitive())


def purposed(draw: Events) -> Pair:
    """Draw a purpose with an infinitive: Paul went to the station to meet Eva."""
    who = draw.subject()
    going = draw.past(who, 0.3, pool="going", where=0)
    return attached(going.main(), draw.event(who, pool="purpose", where=0).infinitive(um=True))


RULES = [
    (reasoned, 10), (judged, 4), (meanwhile, 6), (reported, 7), (resumed, 6), (handed_on, 4),
    (joined, 4), (intended, 4), (purposed, 3),
]  # fmt: skip
