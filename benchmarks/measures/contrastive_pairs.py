"""Sentences of the embedded corpus with a right and a wrong translation, which differ in one point.

A model that prefers the right one by its score has learnt the point (Sennrich 2017, "How
Grammatical is Character-level Neural Machine Translation?"). The rules make both sides, so the
wrong one is wrong by them. `contrastive` scores them.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from benchmarks.measures import contrast_clauses, contrast_rules
from keras_transformer.config import require, require_whole

__all__ = ["PHENOMENA", "Contrast", "contrasts"]

PHENOMENA = contrast_rules.PHENOMENA | contrast_clauses.PHENOMENA
PATIENCE = 10_000  # draws in succession without a new sentence after which a rule is exhausted


class Contrast(NamedTuple):
    """An English sentence, its German translation, and one that is wrong."""

    english: str
    right: str
    wrong: str


def contrasts(phenomenon: str, count: int = 200, seed: int = 0) -> list[Contrast]:
    """Generate sentences with a right and a wrong translation; no English sentence occurs twice.

    Args:
        phenomenon: What the translations differ in, one of `PHENOMENA`.
        count: Number of sentences, at least 1.
        seed: Seed of the sample.

    Raises:
        ValueError: If an argument is out of range, or there are not so many sentences.
    """
    require(phenomenon in PHENOMENA, "phenomenon", phenomenon, f"one of {[*PHENOMENA]}")
    require_whole("count", count, 1)
    rng, found, in_vain = Random(seed), {}, 0
    while len(found) < count:
        english, right, wrong = PHENOMENA[phenomenon](rng)
        if english in found or right == wrong:
            in_vain += 1
            accepted = f"at most about {len(found)}, which is all the rule yields"
            require(in_vain < PATIENCE, "count", count, accepted)
            continue
        in_vain = 0
        found[english] = Contrast(english, right, wrong)
    return list(found.values())
