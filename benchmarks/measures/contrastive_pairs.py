"""Sentences of the built-in grammar with a right and a wrong translation that differ in one point.

A model that prefers the right one by its score has learnt the point (Sennrich 2017, "How
Grammatical is Character-level Neural Machine Translation?"). The rules make both sides, so the
wrong one is wrong by them. `contrastive` scores them.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.measures import contrast_clauses, contrast_rules
from keras_transformer.config import require, require_whole
from keras_transformer.demo.events import Events
from keras_transformer.demo.phrases import distinct

__all__ = ["PHENOMENA", "Contrast", "contrasts"]

PHENOMENA = contrast_rules.PHENOMENA | contrast_clauses.PHENOMENA


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
    draw = Events(seed)

    def pair() -> Contrast:
        while True:
            sides = Contrast(*PHENOMENA[phenomenon](draw))
            if sides.right != sides.wrong:
                return sides

    return distinct(count, pair)
