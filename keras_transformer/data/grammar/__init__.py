"""The embedded default corpus: a synchronous grammar whose rules build an English sentence and its
German translation together, so that the pair agrees by construction, and every English sentence
has exactly one translation. It covers what makes German more than English in other words: gender
and case, strong and weak adjectives, verb-second and verb-final order, separable verbs, the perfect
with haben or sein, pronouns that follow the noun's gender, two-way prepositions, numbers, dates and
clock times. `varied` writes the sentences as people type them: lower-cased, several in a line.
Read `inflection`, `lexicon`, `syntax`, `phrases`, `events`, then the rules in `simple` and
`compound`."""

from collections.abc import Callable
from random import Random

from keras_transformer.data.grammar import compound, simple
from keras_transformer.data.grammar.phrases import pick
from keras_transformer.data.grammar.syntax import Pair
from keras_transformer.data.grammar.variants import varied

__all__ = ["pairs", "splits", "varied"]

Rule = Callable[[Random], Pair]
WEIGHTED = [rule for rule, weight in simple.RULES + compound.RULES for _ in range(weight)]
# `told` came later: it is in training only, so that the held-out sentences stay comparable.
TRAINING = WEIGHTED + [simple.told] * 4
PATIENCE = 10_000  # sentences drawn in vain before the grammar counts as exhausted


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """Distinct English-German sentence pairs; no English and no German sentence comes twice.

    Args:
        count: how many, at least 1; millions are within reach.
        seed: another seed gives another sample. A smaller count gives a prefix of a larger one.

    Returns:
        (English, German) tuples in random order.

    Raises:
        ValueError: when `count` is less than 1 or more than the grammar yields.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    return _draw(count, Random(seed), set(), WEIGHTED)


def _draw(count: int, rng: Random, seen: set[str], rules: list[Rule]) -> list[Pair]:
    """Pairs of which neither side is in `seen`, where they are entered."""
    drawn, in_vain = [], 0
    while len(drawn) < count:
        english, german = pick(rng, rules)(rng)
        if english in seen or german in seen:
            in_vain += 1
            if in_vain == PATIENCE:
                raise ValueError(
                    f"count must be at most about {len(drawn)}, all that the grammar yields, "
                    f"got {count}"
                )
            continue
        in_vain = 0
        seen.update((english, german))
        drawn.append((english, german))
    return drawn


def splits(
    train: int = 200_000, validation: int = 1_000, test: int = 1_000, seed: int = 0
) -> dict[str, list[Pair]]:
    """Training, validation and test pairs that share no English and no German sentence.

    Validation and test pairs are the first of `pairs`. Training has sentences in the simple
    present besides (The small dog sleeps.).

    Args:
        train: how many training pairs, at least 1.
        validation: how many validation pairs, at least 1.
        test: how many test pairs, at least 1.
        seed: as in `pairs`. Test and validation pairs do not depend on `train`.

    Returns:
        The lists under the keys "train", "validation" and "test".

    Raises:
        ValueError: when a count is less than 1 or their sum more than the grammar yields.
    """
    for argument, value in (("train", train), ("validation", validation), ("test", test)):
        if value < 1:
            raise ValueError(f"{argument} must be at least 1, got {value}")
    rng, seen = Random(seed), set()
    held_out = _draw(test + validation, rng, seen, WEIGHTED)
    drawn = _draw(train, rng, seen, TRAINING)
    return {"train": drawn, "validation": held_out[test:], "test": held_out[:test]}
