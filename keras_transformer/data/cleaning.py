"""Cleaning of parallel text: what a model should not be trained on, and a count of what went."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Chinese and Japanese put no spaces between words: each of their characters counts as one word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


@dataclass(frozen=True)
class CleaningReport:
    """Number of pairs that `clean` kept, and that it dropped for each reason.

    A pair counts once, under the first reason that holds, in the order of the fields.

    Args:
        kept: Pairs that were kept.
        empty: One side or both had no text.
        identical: Both sides were the same.
        too_long: A side had more than `max_words` words.
        length_ratio: One side had more than `max_length_ratio` times the words of the other.
        duplicate: The same pair had come before.
    """

    kept: int
    empty: int
    identical: int
    too_long: int
    length_ratio: int
    duplicate: int

    @property
    def dropped(self) -> int:
        """Pairs that were dropped, for whatever reason."""
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
    """Drops pairs that are empty, untranslated, over-long, badly matched or repeated.

    In what is kept each run of white space (no-break spaces, line separators, tabs and newlines
    too) becomes one space, and none is left at the ends; otherwise the text is unchanged, and so
    is the order. A sentence with several different translations keeps them all. Meant for
    training text: a test set loses its comparability with published figures when pairs go.

    Args:
        pairs: (source, target) texts.
        max_words: The longest either side may be, in words: stretches without white space, but
            each character of Chinese and Japanese. None for no limit. 250 is customary for the
            WMT corpora.
        max_length_ratio: The most words one side may have for each word of the other, at least 1;
            None for no limit. The default touches fewer than one in 10,000 pairs of well-matched
            European text; 1.5 is customary for noisy text of long sentences.
        drop_identical: Whether a pair of equal texts goes. Of all noise, untranslated lines harm
            a translation model most: it learns to copy (Khayrallah and Koehn 2018, "On the Impact
            of Various Types of Noise on Neural Machine Translation"). Say False where copying is
            part of the task, as in correcting grammar.

    Returns:
        The pairs that are left (perhaps none), and the report.

    Raises:
        ValueError: A limit below 1.
    """
    for argument, limit in {"max_words": max_words, "max_length_ratio": max_length_ratio}.items():
        if limit is not None and not limit >= 1:
            raise ValueError(f"{argument} must be at least 1, or None for no limit; got {limit}")
    max_words = float("inf") if max_words is None else max_words
    max_length_ratio = float("inf") if max_length_ratio is None else max_length_ratio
    kept: dict[tuple[str, str], None] = {}  # a set that keeps the order
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
