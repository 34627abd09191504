"""Documents of the embedded corpus, whose pronouns refer to a noun of the sentence before.

Anna bought a lamp. It was cheap. English "it" tells nothing of the German er, sie or es: only who
reads both sentences can translate it.
"""

from __future__ import annotations

from random import Random

from keras_transformer.config import require_whole
from keras_transformer.demo.compound import JUDGEMENTS
from keras_transformer.demo.events import NAMED, state
from keras_transformer.demo.inflection import THE, THIS, A, Noun
from keras_transformer.demo.phrases import GOODS, owning, pick, subject, suited, time
from keras_transformer.demo.relatives import used
from keras_transformer.demo.simple import priced
from keras_transformer.demo.syntax import (
    Clause,
    NounPhrase,
    Pair,
    as_part,
    finish,
    noun_phrase,
    pronoun_for,
)

Document = list[Pair]


def documents(count: int, seed: int = 0) -> list[Document]:
    """Generate documents of two or three English-German sentence pairs, each document once.

    The first sentence names a thing. The others call it "it", in German er, sie, es or ihn, and
    occur in this form with things of each gender.

    Args:
        count: Number of documents, at least 1.
        seed: Seed of the sample. With the same seed, a smaller count gives a prefix of a larger
            one.
    """
    require_whole("count", count, 1)
    rng, found = Random(seed), {}
    while len(found) < count:
        document = _document(rng)
        found.setdefault(tuple(document), document)
    return list(found.values())


def _document(rng: Random) -> Document:
    noun = pick(rng, GOODS)
    what, first = _introduced(rng, noun)
    rules = [pick(rng, FOLLOWING) for _ in range(1 + (rng.random() < 0.5))]
    clauses = [rule(rng, noun, what) for rule in dict.fromkeys(rules)]
    return [finish(clause.main()) for clause in (first, *clauses)]


def _introduced(rng: Random, noun: Noun) -> tuple[NounPhrase, Clause]:
    """Anna bought a lamp. My lamp is old."""
    who = subject(rng, pronouns=False)
    if rng.random() < 0.5:
        what = noun_phrase(pick(rng, (THE, THIS, owning(rng, None))), None, noun)
        return what, state(what, pick(rng, JUDGEMENTS[noun.kind][1])[:2])
    what = noun_phrase(pick(rng, (THE, A)), suited(rng, noun), noun, "acc")
    verb = NAMED[pick(rng, ("buy kaufen", "find finden", "see sehen"))]
    return what, Clause(who, verb, [as_part(what, verb)], "past")


def _cost(rng: Random, noun: Noun, what: NounPhrase) -> Clause:
    """It costs only ten euros."""
    return priced(rng, pronoun_for(what), pick(rng, (("only", "nur"), ("", ""))))


def _was(rng: Random, noun: Noun, what: NounPhrase) -> Clause:
    """It was very cheap."""
    adjective = pick(rng, JUDGEMENTS[noun.kind][0])
    english, german = pick(rng, (("very ", "sehr "), ("", "")))
    predicate = english + adjective.english, german + adjective.german
    return state(pronoun_for(what), predicate, pick(rng, ("present", "past")))


def _taken(rng: Random, noun: Noun, what: NounPhrase) -> Clause:
    """Nina sold it yesterday."""
    clause = used(rng, noun, subject(rng, pronouns=False), pronoun_for(what, "acc"))
    if rng.random() < 0.5:
        clause.parts.append(time(rng, "past", clause.verb.uses))
    return clause


FOLLOWING = (_cost, _was, _taken)
