"""Sentences of the embedded corpus in which it is known which word depends on which other one.

The dependent word and the word that it depends on are marked while a rule writes the sentence, so
their places are exact. `analysis.heads` looks for attention heads that connect the two.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from keras_transformer.config import require, require_whole
from keras_transformer.demo.compound import JUDGEMENTS, contrasted
from keras_transformer.demo.events import DYNAMIC, event, state
from keras_transformer.demo.inflection import THE, THIS
from keras_transformer.demo.phrases import GOODS, pick, subject
from keras_transformer.demo.relatives import USES
from keras_transformer.demo.syntax import (
    Clause,
    NounPhrase,
    Pair,
    as_part,
    attached,
    finish,
    noun_phrase,
    pronoun_for,
)

DEPENDENT, HEAD = "\ue000", "\ue001"  # of Unicode's private use area: in no sentence
SEPARABLE = [verb for verb in DYNAMIC if verb.prefix and {*verb.uses} & {*"hp"}]
JUDGED = [noun for noun in GOODS if noun.english_plural and all(JUDGEMENTS[noun.kind])]
PATIENCE = 10_000  # consecutive duplicates after which a rule counts as exhausted


class Linked(NamedTuple):
    """A sentence in both languages, and where a word and the word it depends on begin.

    `english_link` and `german_link` are (dependent, head) in characters of the text; the dependent
    is None in English where only German has such a word.
    """

    english: str
    german: str
    english_link: tuple[int | None, int]
    german_link: tuple[int, int]


def linked_pairs(relation: str, count: int, seed: int = 0) -> list[Linked]:
    """Generate distinct sentences with one relation.

    Args:
        relation: "separable prefix": from the prefix at the end of a German clause to its verb (Eva
            ruft Paul an: an, ruft; calls). "antecedent": from it, er, sie or es to the noun that it
            stands for (the lamp ... it).
        count: Number of sentences, at least 1.
        seed: Seed of the sample.

    Raises:
        ValueError: If an argument is out of range, or there are not so many sentences.
    """
    require(relation in RELATIONS, "relation", relation, f"one of {[*RELATIONS]}")
    require_whole("count", count, 1)
    rng, found, in_vain = Random(seed), {}, 0
    while len(found) < count:
        (english, english_link), (german, german_link) = map(_unmarked, RELATIONS[relation](rng))
        if english in found:
            in_vain += 1
            accepted = f"at most about {len(found)}, which is all the rule yields"
            require(in_vain < PATIENCE, "count", count, accepted)
            continue
        in_vain = 0
        found[english] = Linked(english, german, english_link, german_link)
    return list(found.values())


def separable(rng: Random) -> Pair:
    """Eva calls Paul every day. Eva ruft jeden Tag Paul an."""
    verb = pick(rng, SEPARABLE)
    marked = verb._replace(
        english=tuple(HEAD + form for form in verb.english),
        present=tuple(HEAD + form for form in verb.present),
        prefix=DEPENDENT + verb.prefix,
    )
    tense = "progressive" if "p" in verb.uses and rng.random() < 0.5 else "present"
    when = "habit" if tense == "present" and "h" in verb.uses else ""
    return finish(event(rng, subject(rng), tense, when=when, verb=marked).main())


def antecedent(rng: Random) -> Pair:
    """The lamp was old, but Eva sold it; Eva bought the lamp because it was cheap."""
    noun, who = pick(rng, JUDGED), subject(rng)
    marked = noun._replace(english=HEAD + noun.english, german=HEAD + noun.german)
    determiner, (charms, flaws) = pick(rng, (THE, THIS)), JUDGEMENTS[noun.kind]
    what = noun_phrase(determiner, None, marked)
    adjective = pick(rng, charms + flaws)[:2]
    verb = pick(rng, USES[noun.english])
    if rng.random() < 0.5:
        it = as_part(_marked(pronoun_for(what, "acc")), verb)
        return contrasted(state(what, adjective, "past"), Clause(who, verb, [it], "past"))
    it = state(_marked(pronoun_for(what)), adjective, "past")
    bought = Clause(
        who, verb, [as_part(noun_phrase(determiner, None, marked, "acc"), verb)], "past"
    )
    return attached(bought.main(), it.subordinate("because", "weil"))


def _marked(phrase: NounPhrase) -> NounPhrase:
    return phrase._replace(english=DEPENDENT + phrase.english, german=DEPENDENT + phrase.german)


def _unmarked(text: str) -> tuple[str, tuple[int | None, int]]:
    """Return a text without marks, and where the dependent word and its head begin."""
    dependent = text.replace(HEAD, "").find(DEPENDENT)
    head = text.replace(DEPENDENT, "").index(HEAD)
    plain = text.replace(HEAD, "").replace(DEPENDENT, "")
    return plain, (None if dependent < 0 else dependent, head)


RELATIONS: dict[str, Callable[[Random], Pair]] = {
    "separable prefix": separable,
    "antecedent": antecedent,
}
