"""Buckets: batches of pairs of similar length, with one pair per row."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from keras_transformer.data.ragged import Ragged

MULTIPLE = 4  # lengths are rounded up to a multiple of this


class Buckets:
    """Pairs in buckets of similar length; each bucket has one batch shape.

    The partition of the lengths into at most `num_buckets` ranges is the one with the lowest cost,
    found by dynamic programming. The cost of an epoch is its number of cells (tokens and padding)
    plus half a full batch per batch, so that a small corpus is not split into many small batches.

    Args:
        source, target: Number of tokens of each source (N,), and of each target (N,).
        tokens_per_batch: Maximum cells per side of a batch.
        num_buckets: Maximum number of buckets.
        max_length: Maximum length. Lengths are rounded up to a multiple of 4, or to `max_length` if
            the multiple is larger.

    Attributes:
        shapes: Batch shape (rows, S, T) of each bucket, the shortest first.
        counts: Number of pairs in each bucket.
    """

    def __init__(
        self,
        source: np.ndarray,
        target: np.ndarray,
        tokens_per_batch: int,
        num_buckets: int,
        max_length: int,
    ):
        def rounded(lengths):
            return np.minimum(-(-lengths // MULTIPLE) * MULTIPLE, max_length)

        source, target = rounded(source), rounded(target)
        level = np.unique(np.maximum(source, target), return_inverse=True)[1]
        counts = np.bincount(level)
        S, T = np.zeros_like(counts), np.zeros_like(counts)
        np.maximum.at(S, level, source)
        np.maximum.at(T, level, target)
        num_levels = len(counts)
        # A level: one of the distinct lengths. cost[i, j]: cost of levels i to j - 1 as one bucket.
        cost = np.full((num_levels + 1, num_levels + 1), np.inf)
        np.fill_diagonal(cost, 0)  # a bucket without levels costs nothing
        for i in range(num_levels):
            longest = np.maximum.accumulate(S[i:]), np.maximum.accumulate(T[i:])
            batches, rows = batched(np.cumsum(counts[i:]), np.maximum(*longest), tokens_per_batch)
            cost[i, i + 1 :] = batches * (rows * sum(longest) + tokens_per_batch)
        best, cuts = cost[0], []  # best[j]: lowest cost of levels 0 to j - 1
        for _ in range(1, min(num_buckets, num_levels)):
            total = best[:, None] + cost
            cuts.append(total.argmin(axis=0))
            best = total.min(axis=0)
        edges = [num_levels]
        for cut in reversed(cuts):
            edges.append(cut[edges[-1]])
        edges = sorted({0, *edges})
        shapes = []
        for i, j in itertools.pairwise(edges):
            longest = S[i:j].max(), T[i:j].max()
            _, rows = batched(counts[i:j].sum(), max(longest), tokens_per_batch)
            shapes.append((int(rows), *map(int, longest)))
        bucket = np.searchsorted(edges[1:-1], level, side="right")
        starts = np.cumsum([0, *np.bincount(bucket)])
        self._members = Ragged(np.argsort(bucket, kind="stable"), starts)
        self.shapes = tuple(shapes)
        self.counts = self._members.lengths

    def shuffled(self, generator: np.random.Generator | None) -> list[Ragged]:
        """Return the indices of the pairs of each bucket, one per row.

        Args:
            generator: Shuffles the rows of each bucket; None: they keep their order.
        """
        members = list(self._members)
        if generator is not None:
            members = [generator.permutation(pairs) for pairs in members]
        return [Ragged(pairs, np.arange(len(pairs) + 1)) for pairs in members]


def batched(count: Any, longest: Any, tokens_per_batch: int) -> tuple[Any, Any]:
    """Return the minimum number of batches for `count` rows, and the rows of each if equal.

    Args:
        count: Number of rows, or an array of numbers.
        longest: Cells per row and side, or an array.
        tokens_per_batch: Maximum cells per side of a batch.
    """
    batches = -(-count // (tokens_per_batch // longest))
    return batches, -(-count // batches)
