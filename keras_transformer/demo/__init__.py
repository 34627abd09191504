"""The built-in corpus: sentences that an English-German synchronous grammar generates.

Each rule builds an English sentence and its German translation together, so that the two agree by
construction and every English sentence has exactly one translation. The grammar covers what
distinguishes German from a word-by-word translation of English: gender and case, strong and weak
adjectives, verb-second and verb-final order, separable verbs, the perfect with haben or sein,
pronouns that follow the noun's gender, two-way prepositions, numbers, dates and clock times.
`varied` changes some sources as people type them, for example to lower case, and joins some lines.

Words and endings are data, in `lexicon.toml`. A sentence consists of one or two clauses. A `Clause`
has a subject, a verb and parts, and methods that write it in English and in each German word order.
A pattern is a function that draws a random sentence of one type; its docstring has an example.

Reading order: `lexicon`, `inflection`, `syntax`, `phrases`, `events`, then the patterns in
`simple`, `questions`, `relatives` and `compound`. `discourse` generates documents, `relations`
sentences in which two dependent words are marked.
"""

from __future__ import annotations

from keras_transformer.config import require_whole
from keras_transformer.demo import compound, questions, relatives, simple
from keras_transformer.demo.events import Events
from keras_transformer.demo.inflection import Pair
from keras_transformer.demo.phrases import distinct
from keras_transformer.demo.variants import varied

__all__ = ["pairs", "splits", "varied"]

RULES = [*simple.RULES, *questions.RULES, *relatives.RULES, *compound.RULES]
WEIGHTED = [rule for rule, weight in RULES for _ in range(weight)]


def pairs(count: int, seed: int = 0) -> list[Pair]:
    """Generate English-German sentence pairs; no English and no German sentence occurs twice.

    Args:
        count: Number of pairs, at least 1; the grammar can generate millions.
        seed: Seed of the sample. With the same seed, a smaller `count` gives the first pairs of a
            larger one.

    Returns:
        (English, German) tuples; sentence types are mixed at random.

    Raises:
        ValueError: If `count` is less than 1 or more than the grammar can generate.
    """
    require_whole("count", count, 1)
    draw = Events(seed)
    return distinct(count, lambda: draw.pick(WEIGHTED)(draw), lambda pair: pair)


def splits(
    train: int = 200_000, validation: int = 1_000, test: int = 1_000, seed: int = 0
) -> dict[str, list[Pair]]:
    """Generate training, validation and test pairs that share no English and no German sentence.

    Of the sequence that `pairs` generates, the test pairs are the first, then come the validation
    pairs, then the training pairs.

    Args:
        train: Number of training pairs, at least 1.
        validation: Number of validation pairs, at least 1.
        test: Number of test pairs, at least 1.
        seed: See `pairs`. Test and validation pairs do not depend on `train`.

    Returns:
        The lists of pairs under the keys "train", "validation" and "test".

    Raises:
        ValueError: If a number is less than 1, or their sum is more than the grammar can generate.
    """
    for argument, value in {"train": train, "validation": validation, "test": test}.items():
        require_whole(argument, value, 1)
    drawn = pairs(test + validation + train, seed)
    held_out = test + validation
    return {"train": drawn[held_out:], "validation": drawn[test:held_out], "test": drawn[:test]}
