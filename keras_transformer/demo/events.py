"""`Events`, which draws clauses of the built-in grammar in which somebody does something.

Objects, places and times suit the verb. The patterns of whole sentences are in `simple`,
`questions`, `relatives` and `compound`.
"""

from __future__ import annotations

from typing import Any

from keras_transformer.demo import lexicon
from keras_transformer.demo.lexicon import NAMED_VERBS, VERB_LIST, WORDS, Modal, Verb
from keras_transformer.demo.phrases import Draw, contract
from keras_transformer.demo.syntax import IT, Clause, Phrase, state

DYNAMIC = [verb for verb in VERB_LIST if "state" not in verb.uses]
ASKABLE = [verb for verb in DYNAMIC if verb.governs and verb.governs[0] not in ("to", "in")]
USES = ("habit", "progressive", "liking", "state", "clock", "purpose", "duty", "animal")
POOLS = {use: [verb for verb in VERB_LIST if use in verb.uses] for use in USES} | {
    "present": [verb for verb in VERB_LIST if "habit" in verb.uses],
    "past": DYNAMIC,
    "pluperfect": DYNAMIC,
    "planned": [verb for verb in DYNAMIC if "involuntary" not in verb.uses],
    "done": [verb for verb in DYNAMIC if not {"involuntary", "daily"} & {*verb.uses}],
    "placed": [verb for verb in DYNAMIC if verb.places],
    "going": [verb for verb in VERB_LIST if "to" in verb.governs],
}


class Events(Draw):
    """A random number generator that draws phrases and clauses."""

    def complements(
        self, verb: Verb, who: Phrase, negated: bool = False, bare: bool = False
    ) -> list[Phrase]:
        """Draw the objects, or the place or direction, that a verb governs.

        Args:
            verb: The verb.
            who: The subject.
            negated: Whether the clause is negated: indefinite objects without a preposition get
                "kein".
            bare: Whether objects have no determiner, see `Draw.thing`.
        """
        if not verb.governs:
            return []
        first, last = verb.governs[0], verb.governs[-1]
        if first in ("to", "in"):
            return [self.place(verb.roles, first == "to")._replace(slot="direction")]
        governed = last != first != "dat"  # the object follows a preposition
        role = self.pick(verb.roles)
        if role == "PERSON":
            phrase = self.somebody(last, who)
        else:  # "kein" needs an object without preposition: keinen Bus sehen, nicht auf ... warten
            phrase = self.thing(role, last, who, negated and not governed, bare)
        phrase = phrase.after(verb.preposition)
        if governed:
            german = contract(first, phrase.german)
            return [phrase._replace(german=german, slot="prepositional")]
        return [phrase] if last == first else [self.somebody("dat", who), phrase]

    def event(
        self,
        who: Phrase,
        tense: str = "present",
        *,
        pool: str = "",
        modal: Modal | None = None,
        negated: bool = False,
        when: str = "",
        where: float = 0.25,
        verb: Verb | None = None,
    ) -> Clause:
        """Draw a clause: somebody does something, perhaps with somebody, somewhere, at some time.

        Args:
            who: The subject.
            tense: See `syntax.Clause`.
            pool: The key in `POOLS` of the verbs to draw from; "": the tense.
            modal: A modal verb, or None.
            negated: Whether the clause is negated.
            when: Kind of the time, see `Draw.time`; "": no time.
            where: Probability of a place, for verbs with `places`. Verbs with the use "liking",
                except those with "mit", get a companion ("with Anna") with half this probability.
            verb: The verb; None: a verb of the pool is drawn.
        """
        verb = verb or self.pick(POOLS[pool or tense])
        parts = self.complements(verb, who, negated, tense == "liking")
        if "liking" in verb.uses and "mit" not in verb.governs and self.random() < where / 2:
            companion = self.somebody("dat", who)
            parts.append(Phrase(f"with {companion.english}", f"mit {companion.german}", "manner"))
        if verb.places and self.random() < where:
            parts.append(self.place(verb.places))
        if when:
            parts.append(self.time(when, verb.uses))
        return Clause(who, verb, parts, tense, modal, negated)

    def past(self, who: Phrase, timed: float = 0.0, **options: Any) -> Clause:
        """Draw a past event; it has a time with the probability `timed`."""
        return self.event(who, "past", when="past" if self.random() < timed else "", **options)

    def future(self, who: Phrase, timed: float = 1.0, **options: Any) -> Clause:
        """Draw a future event (will, werden); it has a time with the probability `timed`."""
        when = "future" if self.random() < timed else ""
        return self.event(who, pool="planned", modal=lexicon.FUTURE, when=when, **options)

    def habit(self, who: Phrase) -> Clause:
        """Draw a clause about what somebody does every day, often or never."""
        frequency = self.pick(WORDS["frequencies"]) if self.random() < 0.5 else None
        clause = self.event(who, when="" if frequency else "habit", where=0.15)
        clause.frequency = frequency
        return clause

    def happening(self, who: Phrase, negated: bool = False) -> Clause:
        """Draw an event, a habit or a state, in a random tense or with a random modal verb."""
        chance = self.random()
        if chance < 0.38:
            return self.past(who, 0.6, negated=negated)
        if chance < 0.52 and not negated:
            return self.habit(who)
        if chance < 0.58:
            return self.event(who, pool="state", negated=negated)
        if chance < 0.64:
            return self.event(who, "progressive", negated=negated)
        if chance < 0.76:
            return self.future(who, negated=negated)
        if chance < 0.82:
            return self.event(who, "liking", negated=negated)
        modal = self.pick(lexicon.MODAL_LIST[:-1])
        tense = "past" if modal.preterite and chance > 0.93 else "present"
        when = ("past" if tense == "past" else "future") if self.random() < 0.4 else ""
        return self.event(
            who, tense, pool="planned", modal=modal, negated=negated, when=when, where=0.15
        )

    def reason(self, who: Phrase, lead: str) -> Clause:
        """Draw a reason or condition: a state; else with "because" a wish or duty, or the weather.

        Args:
            who: The subject, unless the clause is about the weather.
            lead: The English conjunction: "because", "although" or "if".
        """
        chance, tense = self.random(), "present" if lead == "if" else "past"
        if chance < 0.45:
            return state(who, self.pick(WORDS["states"][: 3 if lead == "although" else 6]), tense)
        if lead == "because":
            modal = self.pick((lexicon.WANT, lexicon.MUST))
            return self.event(who, tense, pool="duty", modal=modal, where=0)
        return Clause(IT, NAMED_VERBS[self.pick(("rain regnen", "snow schneien"))], [], tense)
