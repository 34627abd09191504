"""The words of the built-in grammar, read from `lexicon.toml`, and types for five word classes."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun: singular and plural in both languages ("" if there is none), gender m, f or n.

    `kind` selects the adjectives, and `roles` the verbs and patterns that take the noun. `sex` is
    the row of the English pronouns: "he", "she" or "it". `weak` marks the n-declension. `at` has
    the prepositions of a place: English, German, and German for a direction.
    """

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    kind: str
    roles: Sequence[str] = ()
    sex: str = "it"
    weak: bool = False
    at: Sequence[str] = ()


class Adjective(NamedTuple):
    """An adjective: positive and comparative ("" if unused); German forms without endings."""

    english: str
    german: str
    english_more: str = ""
    german_more: str = ""
    suits: Sequence[str] = ()  # kinds of nouns


class Verb(NamedTuple):
    """A verb: English base, -s, past, participle, -ing; German infinitive and other forms.

    German finite forms are in the order ich, du, er, wir, sie (plural). `governs` has cases, a
    preposition and its case, "to" (direction) or "in" (place). `roles` are the roles of nouns that
    can be its objects. `lexicon.toml` explains `uses` and `places`.
    """

    english: Sequence[str]
    infinitive: str
    present: Sequence[str]
    participle: str
    preterite: Sequence[str] = ()  # empty if the spoken past is the perfect
    prefix: str = ""  # separable prefix: "an" of anrufen
    particle: str = ""  # "on" of turn on
    preposition: str = ""  # "for" of look for
    with_sein: bool = False
    reflexive: bool = False
    governs: Sequence[str] = ()
    roles: Sequence[str] = ()
    uses: Sequence[str] = ()
    places: Sequence[str] = ()


class Modal(NamedTuple):
    """A modal verb: English base, -s and past; German finite forms.

    `kind` is the auxiliary of English questions: "aux" (the modal itself), "do" or "be". `rest` are
    English words before the infinitive, such as "to" of "want to".
    """

    english: Sequence[str]
    kind: str
    present: Sequence[str]
    preterite: Sequence[str] = ()
    rest: str = ""


class Determiner(NamedTuple):
    """A determiner: English singular and plural, German stem, German declension pattern.

    `definite` decides where an object stands in a German clause, see `slots` in `lexicon.toml`.
    """

    english: str
    plural: str
    german: str
    pattern: str
    definite: bool = True


WORDS = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
NOUN_LIST = [Noun(**row) for row in WORDS["nouns"]]
ADJECTIVE_LIST = [Adjective(**row) for row in WORDS["adjectives"]]
VERB_LIST = [Verb(**row) for row in WORDS["verbs"]]
MODAL_LIST = [Modal(**row) for row in WORDS["modals"]]

NOUNS = {noun.english or noun.english_plural: noun for noun in NOUN_LIST}
NOUNS_BY_ROLE = {
    role: [noun for noun in NOUN_LIST if role in noun.roles]
    for role in sorted({role for noun in NOUN_LIST for role in noun.roles})
}
ADJECTIVES_BY_KIND = {
    kind: [adjective for adjective in ADJECTIVE_LIST if kind in adjective.suits]
    for kind in sorted({kind for adjective in ADJECTIVE_LIST for kind in adjective.suits})
}
NAMED_VERBS = {  # by English base and German infinitive: "call anrufen"
    f"{verb.english[0]} {verb.prefix}{verb.infinitive}": verb
    for verb in (*VERB_LIST, *(Verb(**row) for row in WORDS["pattern_verbs"]))
}
WANT, MUST, FUTURE = MODAL_LIST[1], MODAL_LIST[2], MODAL_LIST[-1]
