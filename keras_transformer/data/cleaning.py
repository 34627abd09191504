"""Cleaning of parallel text: remove pairs that harm training, and count them.

A filter is a function `(source, target) -> reason`: it returns the name of the problem if the pair
is to be dropped, else None. `clean` applies the filters that training uses, `screened` any filters.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

Filter = Callable[[str, str], str | None]

# Chinese and Japanese put no spaces between words: each of their characters counts as one word.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
# Reasons for which `clean` drops pairs, in the order in which it checks them.
REASONS = ("empty", "identical", "too_long", "length_ratio", "duplicate")


@dataclass(frozen=True)
class CleaningReport:
    """Numbers of pairs: those that `clean` kept, and those that it dropped for each reason.

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


class LengthFilter:
    """A filter that drops pairs that are empty, untranslated, too long or of unequal length.

    Args:
        max_words, max_length_ratio, drop_identical: See `clean`.

    Call arguments:
        source, target: The texts of a pair.

    Returns:
        "empty", "identical", "too_long" or "length_ratio"; None: the pair is kept.

    Raises:
        ValueError: If a limit is below 1.
    """

    def __init__(
        self,
        max_words: int | None = 250,
        max_length_ratio: float | None = 4.0,
        drop_identical: bool = True,
    ):
        limits = {"max_words": max_words, "max_length_ratio": max_length_ratio}
        for argument, limit in limits.items():
            if limit is not None and not limit >= 1:
                raise ValueError(
                    f"{argument} must be at least 1, or None for no limit; got {limit}"
                )
        self._max_words = float("inf") if max_words is None else max_words
        self._max_ratio = float("inf") if max_length_ratio is None else max_length_ratio
        self._drop_identical = drop_identical

    def __call__(self, source: str, target: str) -> str | None:
        shorter, longer = sorted(len(_WORD.findall(text)) for text in (source, target))
        if shorter == 0:
            return "empty"
        if self._drop_identical and source == target:
            return "identical"
        if longer > self._max_words:
            return "too_long"
        return "length_ratio" if longer > self._max_ratio * shorter else None


class DuplicateFilter:
    """A filter that drops pairs that were passed to it earlier.

    It stores a hash of 16 bytes of each pair that it keeps, in about 100 bytes of memory. Put it
    after other filters, so that it stores fewer pairs.

    Call arguments:
        source, target: The texts of a pair.

    Returns:
        "duplicate"; None: the pair is new.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def __call__(self, source: str, target: str) -> str | None:
        text = f"{source}\t{target}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=16).digest()
        if digest in self._seen:
            return "duplicate"
        self._seen.add(digest)
        return None


def screened(
    pairs: Iterable[tuple[str, str]], filters: Iterable[Filter]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield source, target and reason of each pair.

    The reason is that of the first filter that drops the pair, or None if no filter drops it.
    Before the filters are applied, each run of white space in a text is replaced by one space.

    Args:
        pairs: (source, target) texts, read one by one.
        filters: Filters in the order in which they are applied. If a filter drops a pair, the later
            ones are not applied to it.
    """
    filters = list(filters)
    for pair in pairs:
        source, target = (" ".join(text.split()) for text in pair)
        reasons = (check(source, target) for check in filters)
        yield source, target, next(filter(None, reasons), None)


def clean(
    pairs: Iterable[tuple[str, str]],
    *,
    max_words: int | None = 250,
    max_length_ratio: float | None = 4.0,
    drop_identical: bool = True,
) -> tuple[list[tuple[str, str]], CleaningReport]:
    """Drop pairs that are empty, untranslated, too long, of unequal length or duplicate.

    In the remaining pairs, each run of white space (including no-break spaces, line separators,
    tabs and newlines) becomes one space, and white space at the ends is removed. Apart from that,
    texts and order are unchanged. A sentence with several different translations keeps all of
    them. Clean training text only: results on a test set with dropped pairs are not comparable with
    published ones.

    Args:
        pairs: (source, target) texts.
        max_words: Maximum words per side. A word is a run of characters without white space; in
            Chinese and Japanese each character is a word. None for no limit. 250 is customary for
            the WMT corpora.
        max_length_ratio: Maximum ratio of the word counts of the longer and the shorter side, at
            least 1; None for no limit. 1.5 is customary for noisy text of long sentences.
        drop_identical: Whether to drop pairs whose two texts are equal. Untranslated lines harm a
            translation model more than any other noise: it learns to copy (Khayrallah and Koehn
            2018, "On the Impact of Various Types of Noise on Neural Machine Translation"). Pass
            False where copying is part of the task, as in grammar correction.

    Returns:
        The remaining pairs (possibly none), and the report.

    Raises:
        ValueError: If a limit is below 1.
    """
    lengths = LengthFilter(max_words, max_length_ratio, drop_identical)
    kept, dropped = [], Counter(dict.fromkeys(REASONS, 0))
    for source, target, reason in screened(pairs, [lengths, DuplicateFilter()]):
        if reason is None:
            kept.append((source, target))
        else:
            dropped[reason] += 1
    return kept, CleaningReport(kept=len(kept), **dropped)


def are_exchanged(pairs: Sequence[tuple[str, str]], known: Sequence[tuple[str, str]]) -> bool:
    """Return whether source and target of some pairs seem to be exchanged.

    This is decided by the words that they have in common with the sources and targets of other
    pairs.

    Args:
        pairs: The pairs to check, such as a validation set; the first 2,000 are used.
        known: Pairs in the right order, such as the training set; the first 20,000 are used.
    """
    sides, (of_sources, of_targets) = (
        [[word for pair in few for word in _WORD.findall(pair[side])] for side in (0, 1)]
        for few in (pairs[:2000], known[:20_000])
    )
    source, target = sides

    def share(words, others):
        others = set(others)
        return sum(word in others for word in words) / max(1, len(words))

    as_given = share(source, of_sources) + share(target, of_targets)
    return share(source, of_targets) + share(target, of_sources) > as_given + 0.1
