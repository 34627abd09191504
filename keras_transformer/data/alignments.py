"""Word alignment: links between the tokens of sentence pairs, learned from the pairs alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.ragged import Ragged

NONE = -1  # index for a token without a counterpart
ITERATIONS = 5  # training iterations of each model
NULL = 0.08  # prior probability that a token has no counterpart
PLACES = 8  # parts of equal length that a text is divided into, for relative positions
_CHUNK = 10_000  # pairs that are aligned at a time


def align_tokens(
    sources: Sequence[Sequence[int] | np.ndarray],
    targets: Sequence[Sequence[int] | np.ndarray],
    learn_from: int = 100_000,
) -> list[np.ndarray]:
    """Return, for each target token, the index of the source token that it translates.

    IBM model 1 and then model 2 (Brown et al. 1993) are trained in both directions. For the
    positions in model 2, a text is divided into eight parts of equal length. Only links that both
    directions agree on are kept.

    Args:
        sources: Token ids of each source.
        targets: Token ids of each target, one per source.
        learn_from: The models are trained on at most this many pairs from the beginning; all pairs
            are aligned. In training, a pair of 25 tokens per side needs about 50 kB of memory.

    Returns:
        For each pair, an array (T,) of indices in the source, int32; -1 for tokens without a
        counterpart.

    Raises:
        ValueError: If none of the pairs to learn from has tokens on both sides, the numbers of
            sources and targets differ, or `learn_from` is below 1.
    """
    accepted = f"{len(sources)} sequences, one per source"
    require(len(targets) == len(sources), "targets", f"{len(targets)} sequences", accepted)
    require_whole("learn_from", learn_from, 1)
    learned = sources[:learn_from], targets[:learn_from]
    filled = any(len(x) and len(y) for x, y in zip(*learned, strict=True))
    require(filled, "sources", f"{len(learned[0])} sequences", "token ids, with targets")
    forward, backward = _Probabilities(*learned), _Probabilities(*learned[::-1])
    alignments: list[np.ndarray] = []
    for first in range(0, len(sources), _CHUNK):
        chunk = sources[first : first + _CHUNK], targets[first : first + _CHUNK]
        pairs = zip(forward.best(*chunk), backward.best(*chunk[::-1]), strict=True)
        alignments += (_mutual(places, others) for places, others in pairs)
    return alignments


def _mutual(places_T, places_S):
    """Return the links from target to source that are also links from source to target."""
    if not len(places_S):
        return np.full(len(places_T), NONE, "int32")
    back = places_S[np.maximum(places_T, 0)]
    agreed = (places_T != NONE) & (back == np.arange(len(places_T)))
    return np.where(agreed, places_T, NONE).astype("int32")


def in_rows(links: Ragged, sources: Ragged, starts: np.ndarray) -> Ragged:
    """Convert indices of source tokens from positions in a pair to positions in a row of pairs.

    Args:
        links: For each target token of each pair, the index of its source token in the pair; -1 for
            tokens without a counterpart.
        sources: Token ids of the sources of the same pairs.
        starts: Index of the first pair of each row, and the number of pairs at the end.

    Returns:
        For each target token of each pair, the index of its source token in the row, or -1.
    """
    firsts = sources.starts[:-1] - np.repeat(sources.starts[starts[:-1]], np.diff(starts))
    moved = links.values + np.repeat(firsts, links.lengths)
    return Ragged(np.where(links.values == NONE, NONE, moved), links.starts)


class _Probabilities:
    """A trained alignment model: p(target token | source token), and weights of the positions."""

    def __init__(self, sources, targets):
        self.width = 1 + max((int(max(x)) for x in targets if len(x)), default=0)
        keys, places, starts = self._cells(sources, targets)
        self.keys, pair = np.unique(keys, return_inverse=True)
        _, owner = np.unique(self.keys // self.width, return_inverse=True)
        self.values = np.ones(len(self.keys))
        self.weights = np.ones(1 + PLACES**2)
        chances = np.maximum(np.bincount(places, minlength=len(self.weights)), 1)
        for i in range(2 * ITERATIONS):
            share = self._share(self.values[pair], places, starts)
            share /= np.repeat(np.add.reduceat(share, starts[:-1]), np.diff(starts))
            counts = np.bincount(pair, share, len(self.keys))
            self.values = counts / np.bincount(owner, counts)[owner]
            if i >= ITERATIONS - 1:
                self.weights = np.bincount(places, share, len(self.weights)) / chances

    def best(self, sources, targets):
        """Return, for each pair, the most probable source index of each target token, or -1."""
        keys, places, starts = self._cells(sources, targets)
        if not len(keys):
            return [np.full(len(target), NONE) for target in targets]
        known = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        values = np.where(self.keys[known] == keys, self.values[known], 0)
        share = self._share(values, places, starts)
        best = np.maximum.reduceat(share, starts[:-1])
        is_best = np.flatnonzero(share == np.repeat(best, np.diff(starts)))
        first = is_best[np.searchsorted(is_best, starts[:-1])] - starts[:-1]
        indices = np.where(best > 0, first - 1, NONE)  # link 0: no counterpart
        return np.split(indices, np.cumsum([len(x) for x in targets])[:-1])

    def _share(self, values, places, starts):
        """Return the probability of each link, times the prior of its relative positions."""
        weights = np.where(places == 0, 0.0, self.weights[places])
        total = np.repeat(np.add.reduceat(weights, starts[:-1]), np.diff(starts))
        prior = (1 - NULL) * weights / np.maximum(total, 1e-9)
        return values * np.where(places == 0, NULL, prior)

    def _cells(self, sources, targets):
        """Return all possible links of all target tokens, as three arrays.

        The first link of each target token means that it has no counterpart. It is followed by one
        link to each source token of the pair.

        Returns:
            The key of each link, (source id + 1) * width + target id, or the target id if there is
            no counterpart; the number of its combination of relative positions, from 1, or 0 if
            there is no counterpart; and the index of the first link of each target token, with the
            number of links at the end.
        """
        keys, places, sizes = [np.zeros(0, "int64")], [np.zeros(0, "int64")], [np.zeros(1, "int64")]
        for source, target in zip(sources, targets, strict=True):
            S, T = len(source), len(target)
            source_keys = np.concatenate([[0], np.asarray(source, "int64") + 1])
            keys.append(
                (np.asarray(target, "int64")[:, None] + source_keys * self.width).reshape(-1)
            )
            rows, columns = (np.arange(n) * PLACES // max(n, 1) for n in (T, S))
            place_TS = 1 + rows[:, None] * PLACES + columns
            places.append(np.pad(place_TS, ((0, 0), (1, 0))).reshape(-1))
            sizes.append(np.full(T, S + 1))
        return np.concatenate(keys), np.concatenate(places), np.cumsum(np.concatenate(sizes))
