"""Noun phrases and clauses of the embedded corpus, English and German side by side.

A `Clause` writes its content in each word order: verb-second, verb-first, verb-final, infinitive.
The content is drawn in `events` and in the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from keras_transformer.demo.inflection import (
    CASES,
    GENDER_ROW,
    PERSON,
    PRONOUNS,
    THE,
    Adjective,
    Determiner,
    Modal,
    Noun,
    Verb,
    conjugate_present,
    conjugate_preterite,
    decline,
)

Pair = tuple[str, str]
Rules = tuple[tuple[Callable[[Random], Pair], int], ...]  # patterns and their weights


class NounPhrase(NamedTuple):
    """A noun phrase in one case, with the features that other words agree with.

    The rows are rows of PRONOUNS; they differ where only German has a gender: the hat, it, er.
    `about` is the noun, name or row that the phrase is made of.
    """

    english: str
    german: str
    english_row: str
    german_row: str
    slot: str = "definite"  # or "indefinite", "pronoun": slot of the object in German
    about: Noun | str | None = None


def noun_phrase(
    determiner: Determiner,
    adjective: Adjective | None,
    noun: Noun,
    case: str = "nom",
    plural: bool = False,
) -> NounPhrase:
    """Make a noun phrase in both languages, in a German case."""
    words = noun.english_plural if plural else noun.english
    if adjective:
        words = f"{adjective.english} {words}"
    article = determiner.plural if plural else determiner.english
    if article == "a" and words[0] in "aeiou":
        article = "an"
    german = decline(determiner, adjective, noun, case, plural)
    slot = "definite" if determiner.definite else "indefinite"
    if plural:
        return NounPhrase(join(article, words), german, "they", "they", slot, noun)
    row = GENDER_ROW[noun.gender]
    return NounPhrase(join(article, words), german, noun.sex, row, slot, noun)


def genitive(
    owner: NounPhrase, adjective: Adjective | None, noun: Noun, case: str, plural: bool = False
) -> NounPhrase:
    """Make the neighbour's old dog: der alte Hund des Nachbarn; `owner` is in the genitive."""
    phrase = noun_phrase(THE, adjective, noun, case, plural)
    english = phrase.english.replace("the", owner.english + "'s", 1)
    return phrase._replace(english=english, german=f"{phrase.german} {owner.german}")


def pronoun(english_row: str, german_row: str, case: str = "nom") -> NounPhrase:
    """Make a personal pronoun from the rows of PRONOUNS for English and for German."""
    english = PRONOUNS[english_row][0][case != "nom"]
    german = PRONOUNS[german_row][1][CASES[case]]
    return NounPhrase(english, german, english_row, german_row, "pronoun", english_row)


def pronoun_for(antecedent: NounPhrase, case: str = "nom") -> NounPhrase:
    """Make the pronoun that refers to a noun phrase: the hat ... it: der Hut ... er."""
    return pronoun(antecedent.english_row, antecedent.german_row, case)


class Part(NamedTuple):
    """A constituent of a clause, with its German slot; English keeps the order of the list."""

    english: str
    german: str
    slot: str = ""


# Slots between the finite verb and the end of a German clause, in this order. In a negated clause
# definite objects move to "topic", out of the scope of nicht.
SLOTS = [
    "pronoun",
    "topic",
    "time",
    "particle",
    "definite",
    "not",
    "manner",
    "place",
    "indefinite",
    "prepositional",
    "direction",
    "predicate",
]
PARTICLES = {"progressive": ("particle", "gerade"), "liking": ("not", "gern")}
RANK = {slot: rank for rank, slot in enumerate(SLOTS)}
HAVE = conjugate_present("haben", "hat"), conjugate_preterite("hatte")
BE = conjugate_present("sein"), conjugate_preterite("war")
ENGLISH_BE = ("am", "are", "is", "are", "are"), ("was", "were", "was", "were", "were")


@dataclass(slots=True)
class Clause:
    """A clause of subject, verb and parts, in any of its word orders.

    Tense is present, progressive, liking, past or pluperfect. The English past is the German
    perfect, except for verbs with a preterite (was: war). The progressive is the German present
    with gerade, "likes to" is the German present with gern.
    """

    subject: NounPhrase
    verb: Verb
    parts: list[Part]
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    frequency: Pair | None = None

    def english_verb(self, split: bool) -> Pair:
        """Return the auxiliary ("" if none) and the other verb words; `split` adds do-support."""
        base, third, past, participle, ing = self.verb.english
        person = PERSON[self.subject.english_row]
        in_past, rest = self.tense == "past", ""
        be = ENGLISH_BE[in_past][person]
        if self.modal:
            base, rest = self.modal.base, f"{self.modal.rest} {base}".lstrip()
            third, past = {"have": "has"}.get(base, base + "s"), self.modal.past
            if self.modal.kind != "do":
                return (be if self.modal.kind == "be" else past if in_past else base), rest
        elif self.tense == "liking":
            base, third, rest = "like", "likes", f"to {base}"
        elif self.tense == "progressive":
            return be, ing
        elif self.tense == "pluperfect":
            return "had", participle
        elif base == "be":
            return be, ""
        if split:
            return "did" if in_past else "does" if person == 2 else "do", f"{base} {rest}".rstrip()
        finite = past if in_past else third if person == 2 else base
        return "", f"{finite} {rest}".rstrip()

    def english_parts(self, verb: str) -> list[str]:
        """Return the verb and all that follows: turn on the lamp, but turn it on."""
        words = [part.english for part in self.parts]
        if self.verb.particle:
            words.insert(bool(self.parts) and self.parts[0].slot == "pronoun", self.verb.particle)
        if self.frequency:
            words.insert(0, verb)
            verb = self.frequency[0]
        return [verb, *words]

    def german_verb(self) -> tuple[str, str, str]:
        """Return the finite verb, and the verb at the end of a main and a subordinate clause."""
        verb, person = self.verb, PERSON[self.subject.german_row]
        in_past = self.tense in ("past", "pluperfect")
        if self.modal:
            finite = (self.modal.preterite if in_past else self.modal.present)[person]
            end = verb.prefix + verb.infinitive
        elif in_past and not (verb.preterite and self.tense == "past"):
            finite = (BE if verb.with_sein else HAVE)[self.tense == "pluperfect"][person]
            end = verb.participle
        else:
            finite = (verb.preterite if in_past else verb.present)[person]
            return finite, verb.prefix, verb.prefix + finite
        return finite, end, f"{end} {finite}"

    def german_parts(self) -> tuple[str, list[str]]:
        """Return the reflexive pronoun, and the other parts of the German clause in order."""
        nicht = self.negated and not any(part.german.startswith("kein") for part in self.parts)
        ranked = [
            (RANK["topic" if nicht and part.slot == "definite" else part.slot], part.german)
            for part in self.parts
        ]
        if nicht:
            ranked.append((RANK["not"], "nicht"))
        if self.tense in PARTICLES:
            slot, particle = PARTICLES[self.tense]
            ranked.append((RANK[slot], particle))
        if self.frequency:
            ranked.append((RANK["particle"], self.frequency[1]))
        ranked.sort(key=lambda item: item[0])
        reflexive = PRONOUNS[self.subject.german_row][1][4] if self.verb.reflexive else ""
        return reflexive, [german for _, german in ranked]

    def german_field(self, subject_first: bool = False) -> list[str]:
        """Return subject and parts; sich precedes a noun but follows a pronoun: weil sich Anna."""
        reflexive, middle = self.german_parts()
        if not reflexive:
            return [self.subject.german, *middle]
        if self.subject.slot == "pronoun" or subject_first:
            return [self.subject.german, reflexive, *middle]
        return [reflexive, self.subject.german, *middle]

    def main(self, front: Part | None = None, question: bool = False) -> Pair:
        """Write a verb-second clause, `front` or the subject first; questions are verb-first."""
        auxiliary, verb = self.english_verb(question or self.negated)
        tail = self.english_parts(verb)
        if self.negated:
            auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
        subject = self.subject.english
        words = [auxiliary, subject, *tail] if question else [subject, auxiliary, *tail]
        finite, end, _ = self.german_verb()
        field = self.german_field(subject_first=not (front or question))
        if front:
            return join(front.english, *words), join(front.german, finite, *field, end)
        if question:
            return join(*words), join(finite, *field, end)
        return join(*words), join(field[0], finite, *field[1:], end)

    def subordinate(self, english: str = "", german: str = "") -> Pair:
        """Write a verb-final clause after a conjunction, question word or relative pronoun."""
        words = self.main()[0]
        return join(english, words), join(german, *self.german_field(), self.german_verb()[2])

    def infinitive(self, um: bool = False) -> Pair:
        """Write the clause as an infinitive, without subject: to call Anna, (um) Anna anzurufen."""
        reflexive, middle = self.german_parts()
        verb = f"{self.verb.prefix}zu{'' if self.verb.prefix else ' '}{self.verb.infinitive}"
        english = join("to", *self.english_parts(self.verb.english[0]))
        return english, join("um" * um, reflexive, *middle, verb)


def join(*words: str) -> str:
    """Join the words that are not empty with spaces."""
    return " ".join(word for word in words if word)


WHO = NounPhrase("who", "wer", "he", "he", "pronoun")
ICH, DU = pronoun("I", "I"), pronoun("you", "you")


def as_part(phrase: NounPhrase, verb: Verb | None = None) -> Part:
    """Make an object of a noun phrase, with the English preposition of its verb."""
    preposition = verb.preposition if verb else ""
    return Part(join(preposition, phrase.english), phrase.german, phrase.slot)


def attached(main: Pair, sub: Pair, mark: str = ".") -> Pair:
    """Make a sentence of a clause and a second one; German puts a comma between them."""
    return finish((f"{main[0]} {sub[0]}", f"{main[1]}, {sub[1]}"), mark)


def finish(pair: Pair, mark: str = ".") -> Pair:
    """Make a sentence of a clause: a capital letter and a final mark."""
    english, german = pair
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark
