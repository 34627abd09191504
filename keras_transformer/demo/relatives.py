"""Patterns of sentences with relative clauses: functions that draw a sentence in both languages."""

from __future__ import annotations

from keras_transformer.demo.events import ASKABLE, DYNAMIC, Events
from keras_transformer.demo.inflection import RELATIVE, Pair
from keras_transformer.demo.lexicon import ADJECTIVES_BY_KIND, Noun
from keras_transformer.demo.phrases import GOODS, PEOPLE
from keras_transformer.demo.syntax import BE, Clause, Phrase, attached, join, noun_phrase, state

TRANSITIVE = [verb for verb in DYNAMIC if verb.governs == ["acc"]]
USES = {  # for each noun of GOODS, the transitive verbs that take it as an object
    noun.english: [verb for verb in TRANSITIVE if {*verb.roles} & {*noun.roles}] for noun in GOODS
}
MACHINES = [noun for noun in GOODS if noun.kind == "machine"]


def relative_clause(draw: Events, head: Phrase) -> Pair:
    """Draw a relative clause about a person: who lives in Berlin, whom Anna helped."""
    nominative, accusative, dative, genitive_form = RELATIVE[head.german_row]
    chance = draw.random()
    if chance < 0.5:
        who = head._replace(english="who", german=nominative, slot="pronoun")
        if chance < 0.12:
            return draw.event(who, pool="state").subordinate()
        return draw.past(who, 0.3, where=0.1).subordinate()
    if chance < 0.6:
        noun, adjective = draw.pick(MACHINES), draw.pick(ADJECTIVES_BY_KIND["machine"])
        english = f"whose {noun.english} is {adjective.english}"
        return english, f"{genitive_form} {noun.german} {adjective.german} ist"
    verb = draw.pick([verb for verb in ASKABLE if "PERSON" in verb.roles])
    clause = draw.past(draw.subject(other=head), 0.3, verb=verb, where=0.1)
    del clause.parts[0]
    german = accusative if verb.governs[-1] == "acc" else dative
    if len(verb.governs) > 1:  # a preposition: for whom Anna is waiting, auf den Anna wartet
        german = f"{verb.governs[0]} {german}"
    return clause.subordinate(join(verb.preposition, "whom"), german)


def with_relative(head: Phrase, relative: Pair) -> Phrase:
    """Return a subject followed by its relative clause, which German puts between commas."""
    english, german = relative
    return head._replace(english=f"{head.english} {english}", german=f"{head.german}, {german},")


def person_related(draw: Events) -> Pair:
    """Draw a sentence or question: The man who lives in Berlin called his sister."""
    noun, plural, chance = draw.pick(PEOPLE), draw.random() < 0.1, draw.random()
    head = noun_phrase("the", draw.suited(noun, 0.2), noun, "nom", plural)
    relative = relative_clause(draw, head)
    if chance < 0.75:
        return draw.happening(with_relative(head, relative)).sentence()
    question = Clause(head, BE, []).main(Phrase("who", "wer"), question=True)
    return attached(question, relative, "?")


def used(draw: Events, noun: Noun, who: Phrase, phrase: Phrase | None = None) -> Clause:
    """Draw a past clause in which `who` uses a thing.

    Args:
        noun: The thing.
        who: The subject.
        phrase: The object, which refers to the thing; None: the object is left out, as in a
            relative clause.
    """
    verb = draw.pick(USES[noun.english])
    part = phrase or Phrase("", "", "prepositional")
    return Clause(who, verb, [part.after(verb.preposition)], "past")


def thing_related(draw: Events) -> Pair:
    """Draw a sentence or question: The coat that Anna bought is expensive."""
    noun, chance = draw.pick(GOODS), draw.random()
    plural = bool(noun.english_plural) and draw.random() < 0.2
    head = noun_phrase("the", draw.suited(noun, 0.2), noun, "nom", plural)
    clause = used(draw, noun, draw.subject())
    if draw.random() < 0.4:
        clause.parts.append(draw.time("past", clause.verb.uses))
    relative = clause.subordinate("that", RELATIVE[head.german_row][1])
    if chance < 0.6:
        adjective = draw.pick(ADJECTIVES_BY_KIND[noun.kind])
        return state(with_relative(head, relative), adjective, draw.tense()).sentence()
    question = Clause(head, BE, []).main(Phrase("where", "wo"), question=True)
    return attached(question, relative, "?")


RULES = [(person_related, 8), (thing_related, 5)]
