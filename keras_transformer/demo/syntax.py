"""Noun phrases and clauses of the built-in grammar, in English and German.

A `Clause` can be written in each word order: verb-second, verb-first, verb-final, infinitive. Its
content is drawn in `phrases`, `events` and the patterns of sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keras_transformer.demo import inflection, lexicon
from keras_transformer.demo.inflection import DETERMINERS, PERSON, PRONOUNS, Pair
from keras_transformer.demo.lexicon import WORDS, Adjective, Determiner, Modal, Noun, Verb


class Phrase(NamedTuple):
    """A constituent of a clause, such as an object, a subject, a time or a place.

    Args:
        english: English words.
        german: German words.
        slot: Position in a German clause, one of SLOTS; "": no position, for question words.
        english_row: Row of PRONOUNS that English words agree with; "" if the phrase is not nominal.
        german_row: The same for German. The rows differ if the genders do: the hat is "it" in
            English, but der Hut is "er".
        about: The noun, name or row of PRONOUNS that the phrase is made of.
    """

    english: str
    german: str
    slot: str = ""
    english_row: str = ""
    german_row: str = ""
    about: Noun | str | None = None

    def after(self, preposition: str) -> Phrase:
        """Return the phrase with an English preposition before it; with "", the same phrase."""
        return self._replace(english=join(preposition, self.english))


def join(*words: str) -> str:
    """Return the words that are not empty, joined with spaces."""
    return " ".join(word for word in words if word)


def both(*pairs: Sequence[Any]) -> Pair:
    """Return the English words of pairs and their German words, each joined with spaces."""
    return join(*(pair[0] for pair in pairs)), join(*(pair[1] for pair in pairs))


def noun_phrase(
    determiner: Determiner | str,
    adjective: Adjective | None,
    noun: Noun,
    case: str = "nom",
    plural: bool = False,
) -> Phrase:
    """Return a noun phrase in both languages.

    Args:
        determiner: A determiner, or the name of one in the lexicon, such as "the".
        adjective: An adjective, or None.
        noun: The noun.
        case: German case, a key of `inflection.CASES`.
        plural: Whether the noun is in the plural.
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
    """Return a noun phrase with an owner, which is in the genitive: the neighbour's old dog."""
    phrase = noun_phrase("the", adjective, noun, case)
    english = phrase.english.replace("the", owner.english + "'s", 1)
    return phrase._replace(english=english, german=f"{phrase.german} {owner.german}")


def pronoun(english_row: str, german_row: str, case: str = "nom") -> Phrase:
    """Return a personal pronoun in a case, given rows of PRONOUNS for both languages."""
    english = PRONOUNS[english_row]["english"][case != "nom"]
    german = PRONOUNS[german_row]["german"][inflection.CASES[case]]
    return Phrase(english, german, "pronoun", english_row, german_row, english_row)


def pronoun_for(antecedent: Phrase, case: str = "nom") -> Phrase:
    """Return the pronoun that refers to a noun phrase: for the hat, "it" and "er"."""
    return pronoun(antecedent.english_row, antecedent.german_row, case)


WHO = Phrase("who", "wer", "pronoun", "he", "he")
IT = Phrase("it", "es", "pronoun", "it", "it")  # the subject of the weather: it rains
ICH, DU = pronoun("I", "I"), pronoun("you", "you")

SLOTS = WORDS["slots"]
PARTICLES = {"progressive": ("particle", "gerade"), "liking": ("not", "gern")}
HAVE, BE = lexicon.NAMED_VERBS["have haben"], lexicon.NAMED_VERBS["be sein"]
ENGLISH_BE = ("am", "are", "is", "are", "are"), ("was", "were", "was", "were", "were")


@dataclass(slots=True)
class Clause:
    """A clause with a subject, a verb and parts, which can be written in any word order.

    The tense is present, progressive, liking, past or pluperfect. The English past becomes the
    German perfect, except for modal verbs and verbs with a preterite (was: war). The progressive
    becomes the German present with gerade; "likes to" (liking) becomes the German present with
    gern. `frequency` is an adverb in English and German, such as ("often", "oft"), or None.
    """

    subject: Phrase
    verb: Verb
    parts: list[Phrase]  # in the English order
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    frequency: Sequence[str] | None = None

    def english_verb(self, split: bool) -> Pair:
        """Return the auxiliary ("" if there is none) and the other words of the English verb.

        With `split`, as in questions and negations, "do" is added if there is no auxiliary.
        """
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
        """Return the English adverb of frequency, if any, the verb words and the parts.

        A particle precedes a noun, but follows a pronoun: turn on the lamp, turn it on.
        """
        words = [part.english for part in self.parts]
        if self.verb.particle:
            words.insert(bool(self.parts) and self.parts[0].slot == "pronoun", self.verb.particle)
        return [self.frequency[0], verb, *words] if self.frequency else [verb, *words]

    def german_verb(self) -> tuple[str, str, str]:
        """Return the German finite verb, the end of a main clause, the end of a subordinate clause.

        The end of a main clause is "" if the verb has one word.
        """
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
        """Return the German reflexive pronoun or "", and the parts and small words in order."""
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
        """Return the German subject and parts in order.

        The reflexive pronoun precedes the subject (weil sich Anna), unless the subject is a pronoun
        or `subject_first` is set.
        """
        reflexive, middle = self.german_parts()
        if self.subject.slot == "pronoun" or subject_first:
            return [self.subject.german, reflexive, *middle]
        return [reflexive, self.subject.german, *middle]

    def main(self, front: Phrase | None = None, question: bool = False) -> Pair:
        """Return a main clause without a final mark.

        The German verb is second; in a question without `front`, it is first.

        Args:
            front: Phrase to put first; None: the subject is first.
            question: Whether the clause is a question.
        """
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
        """Return a main clause as a sentence, with a capital letter and a final mark."""
        return finish(self.main(front, question), ".?"[question])

    def subordinate(self, english: str = "", german: str = "") -> Pair:
        """Return a subordinate clause, after a conjunction, question word or relative pronoun.

        Args:
            english, german: The word that introduces the clause, in each language; "": none.
        """
        words = self.main()[0]
        return join(english, words), join(german, *self.german_field(), self.german_verb()[2])

    def infinitive(self, um: bool = False) -> Pair:
        """Return the clause as an infinitive without its subject: to call Anna, Anna anzurufen.

        With `um`, German begins with um, which expresses a purpose.
        """
        reflexive, middle = self.german_parts()
        verb = f"{self.verb.prefix}zu{'' if self.verb.prefix else ' '}{self.verb.infinitive}"
        english = join("to", *self.english_parts(self.verb.english[0]))
        return english, join("um" * um, reflexive, *middle, verb)


def state(who: Phrase, predicate: Sequence[str], tense: str = "present") -> Clause:
    """Return a clause with the verb be (sein) and a predicate, given in English and German."""
    return Clause(who, BE, [Phrase(predicate[0], predicate[1], "predicate")], tense)


def finish(pair: Pair, mark: str = ".") -> Pair:
    """Return a clause as a sentence, with a capital letter and a final mark."""
    english, german = pair
    return english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark


def attached(main: Pair, sub: Pair, mark: str = ".") -> Pair:
    """Return two clauses as one sentence; German puts a comma between them."""
    return finish((f"{main[0]} {sub[0]}", f"{main[1]}, {sub[1]}"), mark)
