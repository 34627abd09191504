"""Sentences of the built-in grammar with a known dependency between two words.

The dependent word and its head, the word that it depends on, are marked while a rule writes the
sentence, so their positions are exact. `analysis.heads` finds attention heads that connect them.
"""

from __future__ import annotations

from typing import NamedTuple

from keras_transformer.config import require, require_whole
from keras_transformer.demo.compound import contrasted
from keras_transformer.demo.events import DYNAMIC, Events
from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND
from keras_transformer.demo.phrases import GOODS, distinct
from keras_transformer.demo.relatives import USES
from keras_transformer.demo.syntax import Clause, Phrase, attached, noun_phrase, pronoun_for, state

DEPENDENT, HEAD = "\ue000", "\ue001"  # marks from Unicode's private use area
SEPARABLE = [verb for verb in DYNAMIC if verb.prefix and "habit" in verb.uses]
COUNTED = [noun for noun in GOODS if noun.english_plural]


class Linked(NamedTuple):
    """A sentence in both languages, with the positions of a dependent word and its head.

    `english_link` and `german_link` are pairs: the index of the first character of the dependent
    word, and that of its head. The former is None in English if only German has such a word.
    """

    english: str
    german: str
    english_link: tuple[int | None, int]
    german_link: tuple[int, int]


def linked_pairs(relation: str, count: int, seed: int = 0) -> list[Linked]:
    """Generate distinct sentences with one relation.

    Args:
        relation: "separable prefix": the prefix at the end of a German clause depends on its verb
            (Eva ruft Paul an: "an" on "ruft"; in English, only "calls"). "antecedent": the pronoun
            it, er, sie, es or ihn depends on its noun (the lamp ... it).
        count: Number of sentences, at least 1.
        seed: Seed of the sample.

    Raises:
        ValueError: If an argument is out of range, or `count` is more than the grammar can
            generate.
    """
    require(relation in RELATIONS, "relation", relation, f"one of {[*RELATIONS]}")
    require_whole("count", count, 1)
    draw = Events(seed)
    return distinct(count, lambda: _linked(RELATIONS[relation](draw)))


def _linked(pair: Pair) -> Linked:
    """Return a marked sentence without its marks, and the positions of the marked words."""
    (english, (dependent, head)), (german, german_link) = map(_unmarked, pair)
    english_link = (None if dependent < 0 else dependent, head)
    return Linked(english, german, english_link, german_link)


def _unmarked(text: str) -> tuple[str, tuple[int, int]]:
    """Return a text without marks, and the starts of the dependent word (or -1) and its head."""
    dependent = text.replace(HEAD, "").find(DEPENDENT)
    head = text.replace(DEPENDENT, "").index(HEAD)
    plain = text.replace(HEAD, "").replace(DEPENDENT, "")
    return plain, (dependent, head)


def separable(draw: Events) -> Pair:
    """Draw a marked sentence with a separable verb: Eva ruft jeden Tag Paul an."""
    verb = draw.pick(SEPARABLE)
    marked = verb._replace(
        english=[HEAD + form for form in verb.english],
        present=[HEAD + form for form in verb.present],
        prefix=DEPENDENT + verb.prefix,
    )
    return draw.event(draw.subject(), when="habit", verb=marked).sentence()


def antecedent(draw: Events) -> Pair:
    """Draw a marked sentence with a noun and its pronoun: The lamp was old, but Eva sold it."""
    noun, who = draw.pick(COUNTED), draw.subject()
    marked = noun._replace(english=HEAD + noun.english, german=HEAD + noun.german)
    determiner, adjective = draw.pick(("the", "this")), draw.pick(ADJECTIVES_BY_KIND[noun.kind])
    what = noun_phrase(determiner, None, marked)
    verb = draw.pick(USES[noun.english])
    if draw.random() < 0.5:
        it = _marked(pronoun_for(what, "acc")).after(verb.preposition)
        return contrasted(state(what, adjective, "past"), Clause(who, verb, [it], "past"))
    reason = state(_marked(pronoun_for(what)), adjective, "past")
    bought = noun_phrase(determiner, None, marked, "acc").after(verb.preposition)
    main = Clause(who, verb, [bought], "past").main()
    return attached(main, reason.subordinate("because", "weil"))


def _marked(phrase: Phrase) -> Phrase:
    return phrase._replace(english=DEPENDENT + phrase.english, german=DEPENDENT + phrase.german)


RELATIONS = {"separable prefix": separable, "antecedent": antecedent}
