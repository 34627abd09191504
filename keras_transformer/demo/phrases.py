"""`Draw`, which draws phrases of the built-in grammar: people, things, places and times.

The words of a phrase go together in meaning. `events` builds clauses from these phrases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeVar

from keras_transformer.config import require
from keras_transformer.demo import inflection, lexicon
from keras_transformer.demo.inflection import number, possessive
from keras_transformer.demo.lexicon import WORDS, Adjective, Determiner, Noun
from keras_transformer.demo.syntax import Phrase, both, genitive, noun_phrase, pronoun

Result = TypeVar("Result", bound=Sequence)

NOUNS = lexicon.NOUNS_BY_ROLE
PEOPLE, KIN, GOODS = NOUNS["person"], NOUNS["kin"] + NOUNS["folks"], NOUNS["goods"]
NAMES = WORDS["women"] + WORDS["men"]
SPEAKERS = [possessive(row, row) for row in ("I", "you", "we")]
# Roles of nouns that get no possessor.
NOBODYS = {"beast", "hear", "attend", "draw", "wait", "sing", "tell"}
PATIENCE = 10_000  # number of draws without a new result after which a rule counts as exhausted
MINUTES = (0, 0, 0, 15, 30, 30, 45, 5, 10, 20, 40, 50, 55)


def named(name: str) -> Phrase:
    """Return a first name as a noun phrase, which has one form for all cases but the genitive."""
    row = "she" if name in WORDS["women"] else "he"
    return Phrase(name, name, "definite", row, row, name)


def contract(preposition: str, phrase: str) -> str:
    """Return a German preposition and a phrase, contracted if possible: im Garten (in dem)."""
    article, _, rest = phrase.partition(" ")
    words = f"{preposition} {article}"
    return f"{WORDS['contractions'].get(words, words)} {rest}".rstrip()


def distinct(
    count: int,
    draw: Callable[[], Result],
    texts: Callable[[Result], Iterable[str]] = lambda result: result[:1],
) -> list[Result]:
    """Return `count` random results, no two of which have a text in common.

    Args:
        count: Number of results.
        draw: Function that draws a result.
        texts: Function from a result to its texts that no other result may have; by default, the
            first element.

    Raises:
        ValueError: If `PATIENCE` draws in succession give no new result.
    """
    seen: set[str] = set()
    results: list[Result] = []
    in_vain = 0
    while len(results) < count:
        result = draw()
        if seen.isdisjoint(texts(result)):
            seen.update(texts(result))
            results.append(result)
            in_vain = 0
            continue
        in_vain += 1
        accepted = f"at most about {len(results)}, which is all that the grammar yields"
        require(in_vain < PATIENCE, "count", count, accepted)
    return results


class Draw(Random):
    """A random number generator that draws phrases."""

    def pick(self, choices: Sequence) -> Any:
        """Draw one of the choices; unlike `choice`, the same in all Python versions."""
        return choices[int(self.random() * len(choices))]

    def whole(self, least: int, most: int) -> int:
        """Draw a whole number from `least` to `most`, both included."""
        return least + int(self.random() * (most - least + 1))

    def tense(self) -> str:
        """Draw a tense: "present" or "past"."""
        return self.pick(("present", "past"))

    def suited(self, noun: Noun, probability: float = 0.3) -> Adjective | None:
        """Draw an adjective that suits the noun, with this probability; else return None."""
        if self.random() > probability:
            return None
        return self.pick(lexicon.ADJECTIVES_BY_KIND[noun.kind])

    def person(self, case: str, plural: bool = False) -> Phrase:
        """Draw a person with the definite article: the (old) neighbour."""
        noun = self.pick(PEOPLE)
        return noun_phrase("the", self.suited(noun, 0.2), noun, case, plural)

    def owning(self, owner: Phrase | None) -> Determiner:
        """Draw a possessive determiner: mostly that of `owner`, else my, your, our or Anna's."""
        chance = self.random()
        if owner and chance < 0.6:
            return possessive(owner.english_row, owner.german_row)
        name = self.pick(NAMES)
        if chance > 0.85 and not (owner and name in owner.english):
            return inflection.of_name(name)
        return self.pick(SPEAKERS)

    def kin(self, case: str, owner: Phrase | None) -> Phrase:
        """Draw a relative other than the owner: my brother, her parents."""
        noun = self.pick(KIN)
        while owner and noun == owner.about:
            noun = self.pick(KIN)
        plural = not noun.english or (bool(noun.english_plural) and self.random() < 0.15)
        return noun_phrase(self.owning(owner), None, noun, case, plural)

    def subject(self, pronouns: bool = True, other: Phrase | None = None) -> Phrase:
        """Draw a subject that is not `other`.

        Args:
            pronouns: Whether it may be a pronoun.
            other: A person that is not drawn; None: there is no such restriction.
        """
        while True:
            chance = self.random()
            if chance < 0.28 and pronouns:
                row = self.pick(("I", "you", "he", "she", "we", "they"))
                who = pronoun(row, row)
            elif chance < 0.55:
                who = named(self.pick(NAMES))
            elif chance < 0.8:
                who = self.person("nom", plural=chance > 0.75)
            else:
                who = self.kin("nom", None)
            if not other or who.about != other.about:
                return who

    def somebody(self, case: str, owner: Phrase) -> Phrase:
        """Draw a person as an object in a case, but not the subject `owner` itself."""
        chance = self.random()
        if chance < 0.2:
            row = self.pick(("I", "you", "we", "he", "she"))
            if row != owner.english_row and {row, owner.english_row} != {"I", "we"}:
                return pronoun(row, row, case)
        name = self.pick(NAMES)
        if chance < 0.45 and name not in owner.english:
            return named(name)
        if chance < 0.7:
            phrase = self.person(case)
            if phrase.about != owner.about:
                return phrase
        return self.kin(case, owner)

    def thing(
        self, role: str, case: str, owner: Phrase, negated: bool = False, bare: bool = False
    ) -> Phrase:
        """Draw a noun as an object, with a determiner (the, a, my, this, twelve ...) or without it.

        Args:
            role: Role of the noun.
            case: German case.
            owner: The subject, which may own the thing.
            negated: Whether the clause is negated: a becomes kein.
            bare: Whether there is no determiner, as in "likes to read books".
        """
        noun = self.pick(NOUNS[role])
        adjective = self.suited(noun, 0.12 if bare else 0.3)
        chance, mass = self.random(), not noun.english_plural
        negative = "not_" * (negated and not bare)
        if bare or (mass and chance > 0.4):
            return noun_phrase(f"{negative}bare", adjective, noun, case, not mass)
        if chance < 0.3 or mass:
            return noun_phrase("the", adjective, noun, case, plural=chance < 0.06 and not mass)
        if chance < 0.65:
            return noun_phrase(f"{negative}a", adjective, noun, case)
        if chance < 0.75 and case == "acc" and not (negated or role in ("topic", "joy")):
            counted = "count" in noun.roles
            many = inflection.counting(self.whole(2, 30)) if counted else "many"
            return noun_phrase(many, adjective, noun, case, plural=True)
        if chance < 0.8 and role not in NOBODYS:
            return genitive(self.possessor(), adjective, noun, case)
        if chance < 0.92 and role not in NOBODYS:
            return noun_phrase(self.owning(owner), adjective, noun, case, plural=chance > 0.9)
        return noun_phrase("this", adjective, noun, case, plural=chance > 0.98)

    def possessor(self) -> Phrase:
        """Draw an owner in the genitive: the neighbour, my sister."""
        if self.random() < 0.5:
            return noun_phrase("the", None, self.pick(PEOPLE), "gen")
        return noun_phrase(self.pick(SPEAKERS), None, self.pick(NOUNS["kin"]), "gen")

    def place(self, roles: Sequence[str], direction: bool = False) -> Phrase:
        """Draw a place (German dative), or a direction (accusative, or zu with the dative)."""
        slot, role = "direction" if direction else "place", self.pick(roles)
        if role == "TOWN":
            english, german, german_to = self.pick(WORDS["towns"])
            if direction:
                return Phrase(f"to {english}", german_to, slot)
            return Phrase(f"in {english}", german, slot)
        noun = self.pick(NOUNS[role])
        (english, german, german_to), is_room = noun.at, "room" in noun.roles
        case = "acc" if direction and german_to != "zu" else "dat"
        if direction:
            english, german = "into" if is_room else "to", german_to
        determiner = "a" if self.random() < 0.1 and not is_room else "the"
        phrase = noun_phrase(determiner, self.suited(noun, 0.2), noun, case)
        return Phrase(f"{english} {phrase.english}", contract(german, phrase.german), slot)

    def spot(self, case: str, about: Noun, wall: bool = False) -> Phrase:
        """Draw a position relative to a thing, such as "under the table".

        Args:
            case: "dat" for a place, "acc" for a direction.
            about: The noun whose position it is; the position is relative to another noun.
            wall: Whether the position is on a wall, for things that hang.
        """
        english, german, name = ("on", "an", "wall") if wall else self.pick(WORDS["spots"])
        while name == about.english:
            english, german, name = self.pick(WORDS["spots"])
        noun = lexicon.NOUNS[name]
        phrase = noun_phrase("the", self.suited(noun, 0.2), noun, case)
        return Phrase(f"{english} {phrase.english}", contract(german, phrase.german), "direction")

    def time(self, tense: str, uses: Sequence[str] = ()) -> Phrase:
        """Draw a time that suits a verb.

        Args:
            tense: "past", "future" or "habit".
            uses: The `uses` of the verb.
        """
        chance, far, habit = self.random(), "far" in uses, tense == "habit"
        if habit:
            times = WORDS["daily_times" if "daily" in uses else "habit_times"]
        else:
            times = WORDS[f"{tense}_times"] + WORDS[f"far_{tense}_times"] * far
        english, german = self.pick(times)
        if chance < 0.3:
            english, german = self.pick(WORDS["weekdays"])
            english = f"on {english}{'s' * habit}"
            german = f"{german.lower()}s" if habit else f"am {german}"
        elif chance < 0.42 and not habit:
            day, tag = inflection.ordinal(self.whole(1, 31))
            month, monat = self.pick(WORDS["months"])
            return Phrase(f"on the {day} of {month}", f"am {tag}n {monat}", "time")
        elif chance < 0.52 and not habit and "daily" not in uses:
            count, zahl = number(self.whole(2, 12))
            unit, einheit = self.pick(WORDS["spans"][: 4 if far else 2])
            if tense == "past":
                return Phrase(f"{count} {unit} ago", f"vor {zahl} {einheit}", "time")
            return Phrase(f"in {count} {unit}", f"in {zahl} {einheit}", "time")
        if "clock" in uses and self.random() < 0.5 and (chance < 0.3 or not far):
            clock = inflection.clock(self.whole(1, 12), self.pick(MINUTES))
            date = (english, german) if self.random() < 0.7 else ("", "")
            english, german = both(date, clock)
        return Phrase(english, german, "time")
