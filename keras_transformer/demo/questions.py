"""Patterns of questions: a function draws one and returns it in both languages."""

from __future__ import annotations

from random import Random

from keras_transformer.demo.events import ASKABLE, event, future, happening, past
from keras_transformer.demo.inflection import WHICH, Verb
from keras_transformer.demo.phrases import COUNTED, NOUNS, pick, subject, suited
from keras_transformer.demo.syntax import (
    ICH,
    WHO,
    Clause,
    NounPhrase,
    Pair,
    Part,
    finish,
    join,
    noun_phrase,
)

INTERROGATIVE = {"acc": "wen", "dat": "wem"}


def asked(rng: Random) -> Pair:
    """Did Anna call her brother? Hat Anna ihren Bruder angerufen?"""
    clause = happening(rng, subject(rng, other=ICH))
    clause.frequency = None
    return finish(clause.main(question=True), "?")


def asked_what(rng: Random) -> Pair:
    """Whom did Anna call yesterday? Wen hat Anna gestern angerufen?"""
    clause, front = questioned(rng, subject(rng, other=ICH))
    return finish(clause.main(front, question=True), "?")


def questioned(rng: Random, who: NounPhrase) -> tuple[Clause, Part]:
    """Return a clause that lacks an adverbial or an object, and the question word for it."""
    chance = rng.random()
    if chance < 0.1:
        return past(rng, who), Part("when", "wann")
    if chance < 0.15:
        return future(rng, who, timed=0), Part("when", "wann")
    if chance < 0.3:
        return past(rng, who, 0.4, pool="placed", where=0), Part("where", "wo")
    if chance < 0.42:
        return past(rng, who, 0.4), Part("why", "warum")
    if chance < 0.5:
        return event(rng, who, where=0.15), Part("how often", "wie oft")
    verb = pick(rng, ASKABLE)
    clause = past(rng, who, 0.3, verb=verb, where=0.15)
    index = int(verb.governs == ("dat", "acc"))  # gives somebody what?
    clause.parts[index] = Part(verb.preposition, "", "prepositional")
    return clause, object_question(rng, verb)


def object_question(rng: Random, verb: Verb) -> Part:
    """Return the question for an object.

    Whom: wen, wem, auf wen; what: was, worauf; which coat; how many eggs.
    """
    role, preposition, case = pick(rng, verb.roles), verb.governs[0], verb.governs[-1]
    governed = preposition != case and preposition != "dat"
    if role == "PERSON":
        return Part("whom", join(preposition * governed, INTERROGATIVE[case]))
    if governed:  # wo + auf, with an r between vowels
        return Part("what", f"wo{'r' * (preposition[0] in 'aü')}{preposition}")
    noun, chance = pick(rng, NOUNS[role]), rng.random()
    if chance < 0.4:
        return Part("what", "was")
    if chance < 0.6 and noun.english in COUNTED:
        return Part(f"how many {noun.english_plural}", f"wie viele {noun.german_plural}")
    phrase = noun_phrase(WHICH, suited(rng, noun, 0.2), noun, "acc")
    return Part(phrase.english, phrase.german)


def asked_who(rng: Random) -> Pair:
    """Who called the doctor? Wer hat den Arzt angerufen?"""
    clause = past(rng, WHO, 0.5) if rng.random() < 0.7 else future(rng, WHO)
    return finish(clause.main(), "?")
