"""Patterns of questions: functions that draw a question in both languages."""

from __future__ import annotations

from keras_transformer.demo.events import ASKABLE, Events
from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.lexicon import Verb
from keras_transformer.demo.phrases import NOUNS
from keras_transformer.demo.syntax import ICH, WHO, Clause, Phrase, finish, join, noun_phrase

INTERROGATIVE = {"acc": "wen", "dat": "wem"}


def asked(draw: Events) -> Pair:
    """Draw a yes/no question: Did Anna call her brother?"""
    return draw.happening(draw.subject(other=ICH)).sentence(question=True)


def asked_what(draw: Events) -> Pair:
    """Draw a question for an object, a time, a place or a reason: Whom did Anna call yesterday?"""
    clause, front = questioned(draw, draw.subject(other=ICH))
    return clause.sentence(front, question=True)


def asked_who(draw: Events) -> Pair:
    """Draw a question for the subject: Who called the doctor?"""
    clause = draw.past(WHO, 0.5) if draw.random() < 0.7 else draw.future(WHO)
    return finish(clause.main(), "?")


def questioned(draw: Events, who: Phrase) -> tuple[Clause, Phrase]:
    """Draw a clause without some part, an adverbial or an object, and the question word for it."""
    chance = draw.random()
    if chance < 0.1:
        return draw.past(who), Phrase("when", "wann")
    if chance < 0.15:
        return draw.future(who, timed=0), Phrase("when", "wann")
    if chance < 0.3:
        return draw.past(who, 0.4, pool="placed", where=0), Phrase("where", "wo")
    if chance < 0.42:
        return draw.past(who, 0.4), Phrase("why", "warum")
    verb = draw.pick(ASKABLE)
    clause = draw.past(who, 0.3, verb=verb, where=0.15)
    index = int(verb.governs == ["dat", "acc"])  # the accusative object: What did he give Eva?
    clause.parts[index] = Phrase(verb.preposition, "", "prepositional")
    return clause, object_question(draw, verb)


def object_question(draw: Events, verb: Verb) -> Phrase:
    """Draw the question word for an object of a verb.

    Persons: whom (wen, wem, auf wen). Things: what (was, worauf), or a noun with "which".
    """
    role, preposition, case = draw.pick(verb.roles), verb.governs[0], verb.governs[-1]
    governed = preposition != case and preposition != "dat"
    if role == "PERSON":
        return Phrase("whom", join(preposition * governed, INTERROGATIVE[case]))
    if governed:
        return Phrase("what", with_wo(preposition))
    noun, chance = draw.pick(NOUNS[role]), draw.random()
    if chance < 0.4:
        return Phrase("what", "was")
    return noun_phrase("which", draw.suited(noun, 0.2), noun, "acc")


def with_wo(preposition: str) -> str:
    """Return the German question word of a preposition, with an r between vowels: womit, worauf."""
    return f"wo{'r' * (preposition[0] in 'aü')}{preposition}"


RULES = [(asked, 6), (asked_what, 6), (asked_who, 2)]
