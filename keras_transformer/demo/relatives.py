"""Patterns of relative clauses: a function draws a sentence and returns it in both languages."""

from __future__ import annotations

from random import Random

from keras_transformer.demo.events import (
    ADJECTIVES,
    ASKABLE,
    DYNAMIC,
    NAMED,
    event,
    happening,
    past,
    state,
)
from keras_transformer.demo.inflection import RELATIVE, THE, Noun
from keras_transformer.demo.phrases import (
    GOODS,
    GOODS_BY_KIND,
    NOUNS,
    PEOPLE,
    pick,
    subject,
    suited,
    time,
)
from keras_transformer.demo.syntax import (
    DU,
    Clause,
    NounPhrase,
    Pair,
    Part,
    as_part,
    attached,
    finish,
    join,
    noun_phrase,
)

USES = {  # verbs that take a noun as object
    noun.english: [
        verb
        for verb in DYNAMIC
        if verb.governs == ("acc",) and any(noun in NOUNS.get(role, ()) for role in verb.roles)
    ]
    for noun in GOODS
}


def relative_clause(rng: Random, head: NounPhrase) -> Pair:
    """Who lives in Berlin: der in Berlin wohnt; whom Anna helped: dem Anna geholfen hat; ..."""
    nominative, accusative, dative, genitive_form = RELATIVE[head.german_row]
    chance = rng.random()
    if chance < 0.5:
        who = head._replace(english="who", german=nominative, slot="pronoun")
        if chance < 0.12:
            return event(rng, who, pool="state").subordinate()
        if chance < 0.2:
            return event(rng, who, "progressive", where=0.1).subordinate()
        return past(rng, who, 0.3, where=0.1).subordinate()
    if chance < 0.6:
        noun, adjective = pick(rng, GOODS_BY_KIND["machine"]), pick(rng, ADJECTIVES["machine"])
        english = f"whose {noun.english} is {adjective.english}"
        return english, f"{genitive_form} {noun.german} {adjective.german} ist"
    verb = pick(rng, [verb for verb in ASKABLE if "PERSON" in verb.roles])
    clause = past(rng, subject(rng, other=head), 0.3, verb=verb, where=0.1)
    del clause.parts[0]
    german = accusative if verb.governs[-1] == "acc" else dative
    if len(verb.governs) > 1:  # for whom Anna is waiting: auf den Anna wartet
        german = f"{verb.governs[0]} {german}"
    return clause.subordinate(join(verb.preposition, "whom"), german)


def person_related(rng: Random) -> Pair:
    """The man who lives in Berlin called his sister. Der Mann, der in Berlin wohnt, hat ..."""
    noun, plural, chance = pick(rng, PEOPLE), rng.random() < 0.1, rng.random()
    adjective = suited(rng, noun, 0.2)
    head = noun_phrase(THE, adjective, noun, "nom", plural)
    relative = relative_clause(rng, head)
    if chance < 0.5:
        return finish(happening(rng, with_relative(head, relative)).main())
    if chance < 0.7:
        question = Clause(head, NAMED["be sein"], []).main(Part("who", "wer"), question=True)
        return attached(question, relative, "?")
    question, who = chance < 0.8, subject(rng)
    clause = Clause(DU if question else who, NAMED["know kennen"], [])
    clause.parts = [as_part(noun_phrase(THE, adjective, noun, "acc", plural))]
    clause.negated = chance > 0.92
    return attached(clause.main(question=question), relative, ".?"[question])


def with_relative(head: NounPhrase, relative: Pair) -> NounPhrase:
    """Return a subject with its relative clause, which German encloses in commas."""
    english, german = relative
    return head._replace(english=f"{head.english} {english}", german=f"{head.german}, {german},")


def used(rng: Random, noun: Noun, who: NounPhrase, phrase: NounPhrase | None = None) -> Clause:
    """Return a past clause about the use of a thing; without `phrase` its object is left out."""
    verb = pick(rng, USES[noun.english])
    part = as_part(phrase, verb) if phrase else Part(verb.preposition, "", "prepositional")
    return Clause(who, verb, [part], "past")


def thing_related(rng: Random) -> Pair:
    """The coat that Anna bought is expensive. Der Mantel, den Anna gekauft hat, ist teuer."""
    noun, chance = pick(rng, GOODS), rng.random()
    plural, adjective = bool(noun.english_plural) and rng.random() < 0.2, suited(rng, noun, 0.2)
    head = noun_phrase(THE, adjective, noun, "nom", plural)
    clause = used(rng, noun, subject(rng))
    if rng.random() < 0.4:
        clause.parts.append(time(rng, "past", clause.verb.uses))
    relative = clause.subordinate("that", RELATIVE[head.german_row][1])
    if chance < 0.4:
        predicate = pick(rng, ADJECTIVES[noun.kind])
        subject_ = with_relative(head, relative)
        return finish(state(subject_, predicate[:2], pick(rng, ("present", "past"))).main())
    if chance < 0.6:
        question = Clause(head, NAMED["be sein"], []).main(Part("where", "wo"), question=True)
        return attached(question, relative, "?")
    if chance < 0.75 and not plural:
        return attached((f"this is {head.english}", f"das ist {head.german}"), relative)
    head = noun_phrase(THE, adjective, noun, "acc", plural)
    return attached(used(rng, noun, subject(rng), head).main(), relative)
