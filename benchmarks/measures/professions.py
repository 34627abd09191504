"""Sentences in which a pronoun tells the gender of a profession: The doctor lost her umbrella.

English has one word for both genders, German has two: Arzt, Ärztin. `gender` scores the
translations. Like the sentences of WinoMT (Stanovsky et al. 2019, "Evaluating Gender Bias in
Machine Translation"), each has one right gender. Unlike them it names one profession only, and the
rules of the built-in grammar say what a pronoun refers to. `pairs` and `splits` do not contain
these sentences: there, a doctor that is not somebody's sister is always der Arzt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keras_transformer.config import require
from keras_transformer.demo.compound import ordered
from keras_transformer.demo.events import POOLS, Events
from keras_transformer.demo.inflection import GENDER_ROW, Pair, possessive
from keras_transformer.demo.lexicon import NAMED_VERBS, WORDS, Noun
from keras_transformer.demo.phrases import NOUNS, distinct
from keras_transformer.demo.simple import statement
from keras_transformer.demo.syntax import Clause, Phrase, attached, noun_phrase, pronoun_for

GENDERS = {"female": "f", "male": "m"}
# The gender of each profession in stereotyped data. Those of baker, cook, doctor, lawyer and
# teacher are WinoBias's (Zhao et al. 2018, after US labour statistics); the others are chosen so
# that each gender has five.
STEREOTYPES = {
    "doctor": "male", "teacher": "female", "baker": "female", "gardener": "female",
    "student": "female", "painter": "male", "singer": "female", "cook": "male",
    "lawyer": "male", "engineer": "male",
}  # fmt: skip
FORMS = {  # of each profession in German, as subject
    english: {"male": man, "female": woman} for english, man, woman in WORDS["professions"]
}
OWNED = [  # verbs of what one does with one's own things
    verb
    for verb in POOLS["past"]
    if verb.governs == ["acc"] and {*verb.roles} & {"small", "forget", "wash", "wear"}
]


class GenderedPair(NamedTuple):
    """A sentence in English and German, its profession, and the gender: "female" or "male"."""

    english: str
    german: str
    profession: str
    gender: str


def gendered_pairs(
    count: int, seed: int = 0, *, female: float | Mapping[str, float] = 0.5, told: bool = True
) -> list[GenderedPair]:
    """Generate sentences about a person with a profession; no English sentence occurs twice.

    Args:
        count: Number of sentences, at least 1.
        seed: Seed of the sample.
        female: Probability in [0, 1] that the person is a woman, one for all professions or one for
            each key of `STEREOTYPES`.
        told: Whether the English sentence tells the gender by a pronoun. If not, only the German
            one shows it.

    Raises:
        ValueError: If an argument is out of range, or the rules do not yield so many sentences.
    """
    require(count >= 1, "count", count, "at least 1")
    chances = dict(female) if isinstance(female, Mapping) else dict.fromkeys(STEREOTYPES, female)
    require(chances.keys() == STEREOTYPES.keys(), "female", female, f"of {[*STEREOTYPES]}")
    for chance in chances.values():
        require(0 <= chance <= 1, "female", female, "in [0, 1]")
    draw, rules = Events(seed), TOLD if told else UNTOLD

    def pair() -> GenderedPair:
        while True:
            profession = draw.pick([*STEREOTYPES])
            gender = "female" if draw.random() < chances[profession] else "male"
            english, german = draw.pick(rules)(draw, _person(draw, profession, gender))
            # Another doctor in the sentence would make it ambiguous.
            if english.lower().count(profession) == 1:
                return GenderedPair(english, german, profession, gender)

    return distinct(count, pair)


def _person(draw: Events, profession: str, gender: str) -> Phrase:
    letter = GENDERS[gender]
    german = FORMS[profession][gender]
    noun = Noun(profession, "", german, "", letter, "person", sex=GENDER_ROW[letter])
    return noun_phrase("the", draw.suited(noun, 0.2), noun)


def owning_something(draw: Events, who: Phrase) -> Pair:
    """The doctor lost her umbrella. Die Ärztin hat ihren Regenschirm verloren."""
    verb = draw.pick(OWNED)
    noun = draw.pick(NOUNS[draw.pick([x for x in verb.roles if x not in ("PERSON", "pet")])])
    pronoun = possessive(who.english_row, who.german_row)
    part = noun_phrase(pronoun, draw.suited(noun), noun, "acc").after(verb.preposition)
    return statement(draw, Clause(who, verb, [part], "past", negated=draw.random() < 0.15))


def reasoned(draw: Events, who: Phrase) -> Pair:
    """The doctor stayed at home because she was tired. ..., weil sie müde war."""
    lead = ("because", "weil") if draw.random() < 0.6 else ("although", "obwohl")
    because = draw.reason(pronoun_for(who), lead[0])
    while because.subject.english not in ("he", "she"):  # it rained
        because = draw.reason(pronoun_for(who), lead[0])
    return ordered(draw, draw.past(who, 0.3, pool="planned"), lead, because)


def meanwhile(draw: Events, who: Phrase) -> Pair:
    """The doctor ate an apple before she slept. ..., bevor sie geschlafen hat."""
    main, other = draw.past(who, 0.2, where=0.1), draw.past(pronoun_for(who), where=0.1)
    return ordered(draw, main, ("before", "bevor"), other)


def reported(draw: Events, who: Phrase) -> Pair:
    """The doctor says that she has to work. ..., dass sie arbeiten muss."""
    verb = NAMED_VERBS[draw.pick(("say sagen", "think glauben", "know wissen", "hope hoffen"))]
    other = draw.happening(pronoun_for(who)).subordinate("that", "dass")
    return attached(Clause(who, verb, []).main(), other)


def untold(draw: Events, who: Phrase) -> Pair:
    """The doctor slept. Die Ärztin hat geschlafen; without a pronoun or possessive for her."""
    telling = {"he", "him", "his", "she", "her"}
    while True:
        english, german = statement(draw, draw.happening(who))
        if not telling & {*english.lower().strip(".").split()}:
            return english, german


TOLD = (owning_something, reasoned, meanwhile, reported)
UNTOLD = (untold,)
