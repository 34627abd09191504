"""Patterns of simple sentences: functions that draw a sentence in both languages.

RULES lists the patterns with their weights.
"""

from __future__ import annotations

from keras_transformer.demo import syntax
from keras_transformer.demo.events import DYNAMIC, POOLS, Events
from keras_transformer.demo.inflection import Pair, number, with_article
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND, NAMED_VERBS, WORDS, Noun
from keras_transformer.demo.phrases import GOODS, NOUNS
from keras_transformer.demo.syntax import Clause, Phrase, both, noun_phrase, pronoun_for, state

POSTURES = [  # German has liegen, stehen, hängen and legen, stellen where English has be and put
    ("lay", NAMED_VERBS["be liegen"], NAMED_VERBS["put legen"]),
    ("stand", NAMED_VERBS["be stehen"], NAMED_VERBS["put stellen"]),
    ("hang", NAMED_VERBS["be hängen"], NAMED_VERBS["hang hängen"]),
]
ANIMALS = NOUNS["pet"] + NOUNS["beast"]


def question_or_statement(draw: Events, clause: Clause, questions: float = 0.25) -> Pair:
    """Return a clause as a sentence: a yes/no question with the probability `questions`.

    Negated clauses are always statements.
    """
    return clause.sentence(question=not clause.negated and draw.random() < questions)


def statement(draw: Events, clause: Clause) -> Pair:
    """Return a clause as a statement, sometimes with a time or place as its first phrase."""
    movable = [part for part in clause.parts if part.slot in ("time", "place")]
    if movable and not clause.negated and draw.random() < 0.4:
        clause.parts.remove(movable[-1])
        return clause.sentence(movable[-1])
    return clause.sentence()


def happened(draw: Events) -> Pair:
    """Draw a statement about an event: Yesterday Anna called her brother."""
    return statement(draw, draw.happening(draw.subject(), negated=draw.random() < 0.3))


def told(draw: Events) -> Pair:
    """Draw a sentence in the present: Anna reads a book. The small dog sleeps."""
    who, verbs = draw.subject(), DYNAMIC
    if draw.random() < 0.3:
        noun, verbs = draw.pick(ANIMALS), POOLS["animal"]
        who = noun_phrase(draw.pick(("the", "a")), draw.suited(noun, 0.5), noun)
    if who.english_row not in ("he", "she", "it"):  # "they read" may be past
        verbs = [verb for verb in verbs if verb.english[0] != verb.english[2]]
    clause = draw.event(who, verb=draw.pick(verbs), negated=draw.random() < 0.1)
    return question_or_statement(draw, clause, 0.15)


def having(draw: Events) -> Pair:
    """Draw a sentence about a possession: Peter has a dog. He does not have a car."""
    who, negated = draw.subject(), draw.random() < 0.3
    what = draw.thing(draw.pick(("pet", "wear", "small", "loan")), "acc", who, negated)
    clause = Clause(who, syntax.HAVE, [what], draw.tense(), negated=negated)
    return question_or_statement(draw, clause)


def person_described(draw: Events) -> Pair:
    """Draw a sentence that describes a person: My sister is a doctor. Are you tired?"""
    who, chance = draw.subject(), draw.random()
    if chance < 0.25:
        clause = state(who, draw.pick(WORDS["states"]), draw.tense())
        clause.negated = draw.random() < 0.3
        return question_or_statement(draw, clause)
    if chance < 0.35 or who.english_row not in ("he", "she"):
        return state(who, both(number(draw.whole(2, 99)), ("years old", "Jahre alt"))).sentence()
    # German has no article here, and a separate word for women
    english, man, woman = draw.pick(WORDS["professions"])
    german = woman if who.english_row == "she" else man
    return state(who, (with_article(english), german)).sentence()


def thing_described(draw: Events) -> Pair:
    """Draw a sentence that describes a thing: The red coat is more expensive than this hat."""
    noun, chance = draw.pick(GOODS), draw.random()
    what = pointed_at(draw, noun)
    if chance < 0.2:
        return priced(draw, what).sentence()
    adjective, tense = draw.pick(ADJECTIVES_BY_KIND[noun.kind]), draw.tense()
    others = [other for other in GOODS if other.kind == noun.kind and other is not noun]
    if chance < 0.6 and adjective.english_more and others:
        more = both((adjective.english_more, adjective.german_more), ("than", "als"))
        other = pointed_at(draw, draw.pick(others))
        return state(what, both(more, other), tense).sentence()
    degree = draw.pick((("very", "sehr"), ("too", "zu"))) if adjective.english_more else ("", "")
    clause = state(what, both(degree, adjective), tense)
    clause.negated = draw.random() < 0.2
    return question_or_statement(draw, clause)


def pointed_at(draw: Events, noun: Noun) -> Phrase:
    """Draw a definite noun phrase of a thing: the hat, this red hat, my hat, Anna's hat."""
    if draw.random() < 0.15:
        return syntax.genitive(draw.possessor(), draw.suited(noun), noun, "nom")
    determiner = draw.pick(("the", "the", "this", draw.owning(None)))
    return noun_phrase(determiner, draw.suited(noun), noun)


def priced(draw: Events, what: Phrase, only: Pair = ("", "")) -> Clause:
    """Draw a clause about the price of a thing; `only` are words before the price.

    In a German price, Euro has no plural.
    """
    price = Phrase(*both(only, number(draw.whole(2, 99)), ("euros", "Euro")), "indefinite")
    return Clause(what, NAMED_VERBS["cost kosten"], [price])


def located(draw: Events) -> Pair:
    """Draw a sentence about where a thing is, or where somebody put it: The key is on the table."""
    role, lies, lay = draw.pick(POSTURES)
    noun, chance, who = draw.pick(NOUNS[role]), draw.random(), draw.subject()
    plural, adjective = bool(noun.english_plural) and draw.random() < 0.25, draw.suited(noun, 0.2)
    if chance < 0.4:  # a movement, with the accusative: She put the key on the table.
        determiner = draw.owning(who) if draw.random() < 0.3 else "the"
        what = noun_phrase(determiner, adjective, noun, "acc", plural)
        where = draw.spot("acc", noun, role == "hang")
        return statement(draw, Clause(who, lay, [what, where], "past"))
    what = noun_phrase("the", adjective, noun, "nom", plural)
    where = draw.spot("dat", noun, role == "hang")
    if chance < 0.75:
        return question_or_statement(draw, Clause(what, lies, [where], draw.tense()))
    question = Clause(what, syntax.BE, []).sentence(Phrase("where", "wo"), question=True)
    return both(question, Clause(pronoun_for(what), lies, [where]).sentence())


RULES = [
    (happened, 26), (told, 6), (having, 4), (person_described, 10), (thing_described, 6),
    (located, 9),
]  # fmt: skip
