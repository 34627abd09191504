"""The embedded default corpus, an English-German synchronous grammar.

Each rule builds an English sentence and its German translation together, so that the two agree by
construction and every English sentence has exactly one translation. The grammar covers what
distinguishes German from a word-by-word translation of English: gender and case, strong and weak
adjectives, verb-second and verb-final order, separable verbs, the perfect with haben or sein,
pronouns that follow the noun's gender, two-way prepositions, numbers, dates and clock times.
`varied` writes the sentences as people type them: lower-cased, several per line.

Reading order: `inflection`, `lexicon`, `syntax`, `phrases`, `events`, then the rules in `simple`
and `compound`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from keras_transformer.demo import compound, simple
from keras_transformer.demo.phrases import pick
from keras_transformer.demo.syntax import Pair
from keras_transformer.demo.variants import varied

__all__ = ["pairs", "splits", "varied"]

Rule = Callable[[Random], Pair]
WEIGHTED = [rule for rule, weight in simple.RULES + compound.RULES for _ in range(weight)]
# These were added later, to training only: the validation and test sentences stay comparable.
TRAINING = WEIGHTED + [simple.told] * 4 + [simple.employed] * 3 + [simple.located] * 4
PATIENCE = 10_000  # consecutive duplicates after which the grammar counts as exhausted


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """Generate English-German sentence pairs; no English and no German sentence occurs twice.

    Args:
        count: Number of pairs, at least 1; the grammar yields millions.
        seed: Seed of the sample. With the same seed, a smaller count gives a prefix of a larger
            one.

    Returns:
        (English, German) tuples in random order.

    Raises:
        ValueError: If `count` is less than 1 or more than the grammar yields.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    return _draw(count, Random(seed), set(), WEIGHTED)


def _draw(count: int, rng: Random, seen: set[str], rules: list[Rule]) -> list[Pair]:
    """Draw pairs with neither side in `seen`, and add both sides to it."""
    drawn, in_vain = [], 0
    while len(drawn) < count:
        english, german = pick(rng, rules)(rng)
        if english in seen or german in seen:
            in_vain += 1
            if in_vain == PATIENCE:
                raise ValueError(
                    f"count must be at most about {len(drawn)}, which is all the grammar yields, "
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
    """Generate training, validation and test pairs that share no English and no German sentence.

    Test and validation pairs are the first of `pairs`. The training pairs also contain sentences
    in the simple present (The small dog sleeps.).

    Args:
        train: Number of training pairs, at least 1.
        validation: Number of validation pairs, at least 1.
        test: Number of test pairs, at least 1.
        seed: See `pairs`. Test and validation pairs do not depend on `train`.

    Returns:
        The lists of pairs under the keys "train", "validation" and "test".

    Raises:
        ValueError: If a number is less than 1, or their sum is more than the grammar yields.
    """
    for argument, value in (("train", train), ("validation", validation), ("test", test)):
        if value < 1:
            raise ValueError(f"{argument} must be at least 1, got {value}")
    rng, seen = Random(seed), set()
    held_out = _draw(test + validation, rng, seen, WEIGHTED)
    drawn = _draw(train, rng, seen, TRAINING)
    return {"train": drawn, "validation": held_out[test:], "test": held_out[:test]}
