"""Documents of the built-in grammar, with pronouns that refer to a noun of the first sentence.

An example is "Anna bought a lamp. It was cheap." The English "it" does not show whether German
needs er, sie or es: to translate it, one must read both sentences.
"""

from __future__ import annotations

from keras_transformer.config import require_whole
from keras_transformer.demo.events import Events
from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND, NAMED_VERBS, Noun
from keras_transformer.demo.phrases import GOODS, distinct
from keras_transformer.demo.relatives import used
from keras_transformer.demo.simple import priced
from keras_transformer.demo.syntax import Clause, Phrase, noun_phrase, pronoun_for, state


def documents(count: int, seed: int = 0) -> list[list[Pair]]:
    """Generate distinct documents of two or three English-German sentence pairs.

    The first sentence names a thing. The other sentences call it "it", in German er, sie, es or
    ihn; the same English sentences occur after things of each gender.

    Args:
        count: Number of documents, at least 1.
        seed: Seed of the sample. With the same seed, a smaller `count` gives the first documents of
            a larger one.

    Raises:
        ValueError: If `count` is less than 1 or more than the grammar can generate.
    """
    require_whole("count", count, 1)
    draw = Events(seed)
    return distinct(count, lambda: _document(draw), lambda document: [str(document)])


def _document(draw: Events) -> list[Pair]:
    noun = draw.pick(GOODS)
    what, first = _introduced(draw, noun)
    rules = [draw.pick((_cost, _was, _taken)) for _ in range(draw.whole(1, 2))]
    clauses = [rule(draw, noun, what) for rule in dict.fromkeys(rules)]
    return [clause.sentence() for clause in (first, *clauses)]


def _introduced(draw: Events, noun: Noun) -> tuple[Phrase, Clause]:
    """Draw a first sentence: Anna bought a lamp. Return the thing and the clause."""
    who = draw.subject(pronouns=False)
    if draw.random() < 0.5:
        what = noun_phrase(draw.pick(("the", "this", draw.owning(None))), None, noun)
        return what, state(what, draw.pick(ADJECTIVES_BY_KIND[noun.kind]))
    what = noun_phrase(draw.pick(("the", "a")), draw.suited(noun), noun, "acc")
    verb = draw.pick(("buy kaufen", "find finden", "see sehen"))
    return what, Clause(who, NAMED_VERBS[verb], [what], "past")


def _cost(draw: Events, noun: Noun, what: Phrase) -> Clause:
    """Draw a sentence about the price of a thing: It costs only ten euros."""
    return priced(draw, pronoun_for(what), draw.pick((("only", "nur"), ("", ""))))


def _was(draw: Events, noun: Noun, what: Phrase) -> Clause:
    """Draw a sentence about a quality of a thing: It was cheap."""
    return state(pronoun_for(what), draw.pick(ADJECTIVES_BY_KIND[noun.kind]), draw.tense())


def _taken(draw: Events, noun: Noun, what: Phrase) -> Clause:
    """Draw a sentence about the use of a thing: Nina sold it yesterday."""
    clause = used(draw, noun, draw.subject(pronouns=False), pronoun_for(what, "acc"))
    if draw.random() < 0.5:
        clause.parts.append(draw.time("past", clause.verb.uses))
    return clause
