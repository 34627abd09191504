"""Noun phrases and clauses of the embedded grammar, English and German side by side.

A `Clause` writes its content in each word order: verb-second, verb-first, verb-final, infinitive.
The content is drawn in `phrases`, `events` and the patterns of sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_transformer.demo import inflection, lexicon
from keras_transformer.demo.inflection import DETERMINERS, PERSON, PRONOUNS, Pair
from keras_transformer.demo.lexicon import WORDS, Adjective, Determiner, Modal, Noun, Verb


class Phrase(NamedTuple):
    """A constituent of a clause: an object, a subject, a time, a place.

    Args:
        english: English words.
        german: German words.
        slot: Place in a German clause, one of SLOTS.
        english_row: Row of PRONOUNS that English words agree with; "" unless the phrase is nominal.
        german_row: The same for German: they differ where only German has a gender (the hat, it:
            der Hut, er).
        about: The noun, name or row that the phrase is made of.
    """

    english: str
    german: str
    slot: str = ""
    english_row: str = ""
    german_row: str = ""
    about: Noun | str | None = None

    def after(self, preposition: str) -> Phrase:
        """Put an English preposition before the phrase, unless it is empty."""
        return self._replace(english=join(preposition, self.english))


def join(*words: str) -> str:
    """Join the words that are not empty with spaces."""
    return " ".join(word for word in words if word)


def both(*pairs: Sequence[Any]) -> Pair:
    """Join the English and the German words of pairs."""
    return join(*(pair[0] for pair in pairs)), join(*(pair[1] for pair in pairs))


def noun_phrase(
    determiner: Determiner | str,
    adjective: Adjective | None,
    noun: Noun,
    case: str = "nom",
    plural: bool = False,
) -> Phrase:
    """Make a noun phrase in both languages, in a German case.

    The determiner may be the name of one in the lexicon: the, a, this.
    """
    if isinstance(determiner, str):
        determiner = DETERMINERS[determiner]
    words = noun.english_plural if plural else noun.english
    article = determiner.plural if plural else determiner.english
    if adjective:
        words = f"{adjective.english} {words}"
    words = inflection.with_article(words) if article == "a" else join(article, words)
    slot = "definite" if determiner.definite else "indefinite"
    german = inflection.decline(determiner, adjective, noun, case, plural)
    rows = ("they", "they") if plural else (noun.sex, inflection.GENDER_ROW[noun.gender])
    return Phrase(words, german, slot, *rows, noun)


def genitive(owner: Phrase, adjective: Adjective | None, noun: Noun, case: str) -> Phrase:
    """Make the neighbour's old dog: der alte Hund des Nachbarn; `owner` is in the genitive."""
    phrase = noun_phrase("the", adjective, noun, case)
    english = phrase.english.replace("the", owner.english + "'s", 1)
    return phrase._replace(english=english, german=f"{phrase.german} {owner.german}")


def pronoun(english_row: str, german_row: str, case: str = "nom") -> Phrase:
    """Make a personal pronoun from the rows of PRONOUNS for English and for German."""
    english = PRONOUNS[english_row]["english"][case != "nom"]
    german = PRONOUNS[german_row]["german"][inflection.CASES[case]]
    return Phrase(english, german, "pronoun", english_row, german_row, english_row)


def pronoun_for(antecedent: Phrase, case: str = "nom") -> Phrase:
    """Make the pronoun that refers to a noun phrase: the hat ... it: der Hut ... er."""
    return pronoun(antecedent.english_row, antecedent.german_row, case)


WHO = Phrase("who", "wer", "pronoun", "he", "he")
IT = Phrase("it", "es", "pronoun", "it", "it")  # of the weather: refers to no noun
ICH, DU = pronoun("I", "I"), pronoun("you", "you")

SLOTS = WORDS["slots"]
PARTICLES = {"progressive": ("particle", "gerade"), "liking": ("not", "gern")}
HAVE, BE = lexicon.NAMED_VERBS["have haben"], lexicon.NAMED_VERBS["be sein"]
ENGLISH_BE = ("am", "are", "is", "are", "are"), ("was", "were", "was", "were", "were")


@dataclass(slots=True)
class Clause:
    """A clause of subject, verb and parts, in any of its word orders.

    Tense is present, progressive, liking, past or pluperfect. The English past is the German
    perfect, except for verbs with a preterite (was: war). The progressive is the German present
    with gerade, "likes to" is the German present with gern.
    """

    subject: Phrase
    verb: Verb
    parts: list[Phrase]  # in the English order
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    frequency: Sequence[str] | None = None

    def english_verb(self, split: bool) -> Pair:
        """Return the auxiliary ("" if none) and the other verb words; `split` adds do-support."""
        base, third, past, participle, ing = self.verb.english
        person = PERSON[self.subject.english_row]
        in_past, rest = self.tense == "past", ""
        be = ENGLISH_BE[in_past][person]
        if self.modal:
            rest = join(self.modal.rest, base)
            base, third, past = self.modal.english
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
            return "did" if in_past else "does" if person == 2 else "do", join(base, rest)
        return "", join(past if in_past else third if person == 2 else base, rest)

    def english_parts(self, verb: str) -> list[str]:
        """Return the verb and all that follows: turn on the lamp, but turn it on."""
        words = [part.english for part in self.parts]
        if self.verb.particle:
            words.insert(bool(self.parts) and self.parts[0].slot == "pronoun", self.verb.particle)
        return [self.frequency[0], verb, *words] if self.frequency else [verb, *words]

    def german_verb(self) -> tuple[str, str, str]:
        """Return the finite verb, and the verb at the end of a main and a subordinate clause."""
        verb, person = self.verb, PERSON[self.subject.german_row]
        in_past = self.tense in ("past", "pluperfect")
        if self.modal:
            finite = (self.modal.preterite if in_past else self.modal.present)[person]
            end = verb.prefix + verb.infinitive
        elif in_past and not (verb.preterite and self.tense == "past"):
            auxiliary = BE if verb.with_sein else HAVE
            forms = auxiliary.present if self.tense == "past" else auxiliary.preterite
            finite, end = forms[person], verb.participle
        else:
            finite = (verb.preterite if in_past else verb.present)[person]
            return finite, verb.prefix, verb.prefix + finite
        return finite, end, f"{end} {finite}"

    def german_parts(self) -> tuple[str, list[str]]:
        """Return the reflexive pronoun, and the other parts of the German clause in order."""
        nicht = self.negated and not any(part.german.startswith("kein") for part in self.parts)
        ranked = [
            ("topic" if nicht and part.slot == "definite" else part.slot, part.german)
            for part in self.parts
        ]
        if nicht:
            ranked.append(("not", "nicht"))
        if self.tense in PARTICLES:
            ranked.append(PARTICLES[self.tense])
        if self.frequency:
            ranked.append(("particle", self.frequency[1]))
        ranked.sort(key=lambda item: SLOTS.index(item[0]))
        reflexive = PRONOUNS[self.subject.german_row]["german"][4] if self.verb.reflexive else ""
        return reflexive, [german for _, german in ranked]

    def german_field(self, subject_first: bool = False) -> list[str]:
        """Return subject and parts; sich precedes a noun but follows a pronoun: weil sich Anna."""
        reflexive, middle = self.german_parts()
        if self.subject.slot == "pronoun" or subject_first:
            return [self.subject.german, reflexive, *middle]
        return [reflexive, self.subject.german, *middle]

    def main(self, front: Phrase | None = None, question: bool = False) -> Pair:
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

    def sentence(self, front: Phrase | None = None, question: bool = False) -> Pair:
        """Write the clause as a sentence of its own, like `main`."""
        return finish(self.main(front, question), ".?"[question])

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


def state(who: Phrase, predicate: Sequence[str], tense: str = "present") -> Clause:
    """Make a clause with to be and a predicate: an adjective, or words of both languages."""
    return Clause(who, BE, [Phrase(predicate[0], predicate[1], "predicate")], tense)


def finish(pair: Pair, mark: str = ".") -> Pair:
    """Make a sentence of a clause: a capital letter and a final mark."""
    english, german = pair
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark


def attached(main: Pair, sub: Pair, mark: str = ".") -> Pair:
    """Make a sentence of a clause and a second one; German puts a comma between them."""
    return finish((f"{main[0]} {sub[0]}", f"{main[1]}, {sub[1]}"), mark)
