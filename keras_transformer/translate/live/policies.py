"""Policies of live translation: how many words of a draft are written before more source is read.

A draft translates the source words read so far, and begins with the words written so far.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keras_transformer.config import require, require_whole


@dataclass(frozen=True)
class Draft:
    """A translation of the first words of a sentence.

    Args:
        words: The words of the translation.
        distances: Returns, for each word, how many source tokens follow the last one to which one
            of its tokens attends most.
    """

    words: list[str]
    distances: Callable[[], list[int]]


class Policy(abc.ABC):
    """Base class of policies.

    Attributes:
        num_drafts: Number of drafts that `stable` compares.
        needs_attention: Whether it reads the attention of the Keras model.
    """

    num_drafts = 1
    needs_attention = False

    def may_write(self, num_read: int, num_written: int) -> bool:
        """Return whether a draft can have new words to write; if not, none is made."""
        return True

    @abc.abstractmethod
    def stable(self, drafts: Sequence[Draft], num_read: int) -> int:
        """Return how many of the last draft's first words may be written.

        Args:
            drafts: The last `num_drafts` drafts of the sentence, or fewer at its beginning.
            num_read: Number of source words of the sentence that the last draft translates.
        """


@dataclass(frozen=True)
class WaitK(Policy):
    """Write word t when source word t + k - 1 has been read (Ma et al. 2019).

    Args:
        k: Number of source words to read before the first word is written, at least 1.
    """

    k: int = 3

    def __post_init__(self) -> None:
        require_whole("k", self.k, 1)

    def may_write(self, num_read: int, num_written: int) -> bool:
        """Return whether more words may be written than are."""
        return num_read - self.k + 1 > num_written

    def stable(self, drafts: Sequence[Draft], num_read: int) -> int:
        """Return the number of words that the schedule allows."""
        return max(0, num_read - self.k + 1)


@dataclass(frozen=True)
class AlignAtt(Policy):
    """Write the words before the first one that attends to the newest source (Papi et al. 2023).

    The cross-attention is that of `running.attention_weights.alignment_weights`.

    Args:
        f: Number of the last source tokens that no written token may attend to most, at least 1.
    """

    f: int = 4
    needs_attention = True

    def __post_init__(self) -> None:
        require_whole("f", self.f, 1)

    def stable(self, drafts: Sequence[Draft], num_read: int) -> int:
        """Return the number of words before the first that attends to the last `f` tokens."""
        distances = drafts[-1].distances()
        return sum(1 for _ in itertools.takewhile(lambda x: x >= self.f, distances))


@dataclass(frozen=True)
class LocalAgreement(Policy):
    """Write the words on which the last n drafts agree (Liu et al. 2020, LA-n).

    Args:
        n: Number of drafts, at least 2.
    """

    n: int = 2

    def __post_init__(self) -> None:
        require_whole("n", self.n, 2)

    @property
    def num_drafts(self) -> int:  # type: ignore[override]  # the field
        """Number of drafts that `stable` compares."""
        return self.n

    def stable(self, drafts: Sequence[Draft], num_read: int) -> int:
        """Return the length of the longest common beginning of n drafts."""
        if len(drafts) < self.n:
            return 0
        rows = zip(*(x.words for x in drafts), strict=False)
        return sum(1 for _ in itertools.takewhile(lambda row: len(set(row)) == 1, rows))


POLICIES: dict[str, type[Policy]] = {
    "wait-k": WaitK,
    "align-att": AlignAtt,
    "local-agreement": LocalAgreement,
}


def policy_named(name: str, size: int | None = None) -> Policy:
    """Return a policy by its name in `POLICIES`.

    Args:
        name: "wait-k", "align-att" or "local-agreement".
        size: Its number: k, f or n; None: its default.
    """
    require(name in POLICIES, "policy", name, f"one of {[*POLICIES]}")
    return POLICIES[name]() if size is None else POLICIES[name](size)  # type: ignore[call-arg]
