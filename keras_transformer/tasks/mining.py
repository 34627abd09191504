"""Margins of pairs of vectors, and mining: the pairs of two sets with the highest margins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.config import require_whole
from keras_transformer.tasks.similarity import BLOCK, cosines, nearest, unit


def margins(
    sources: np.ndarray,
    targets: np.ndarray,
    x: Sequence[int] | np.ndarray,
    y: Sequence[int] | np.ndarray,
    neighbours: int = 4,
) -> np.ndarray:
    """Return the ratio margin of each pair (p,); see `mined`.

    Args:
        sources, targets: Vectors (n, D) and (m, D), one or more.
        x, y: Indices of the sources and the targets of the pairs, (p,) each.
        neighbours: k, the number of neighbours of each vector.
    """
    require_whole("neighbours", neighbours, 1)
    sources, targets = unit(sources), unit(targets)
    of_source, of_target = (
        _neighbours(*pair, neighbours)[1].mean(axis=1)
        for pair in ((sources, targets), (targets, sources))
    )
    return _ratios(cosines(sources[x], targets[y]), of_source[x], of_target[y])


def mined(
    sources: np.ndarray, targets: np.ndarray, neighbours: int = 4
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best pairs, in which each vector occurs at most once, best first.

    The score of a pair is the ratio margin (Artetxe and Schwenk 2019, section 3.1)

        cos(x, y) / (sum_z cos(x, z) / 2k + sum_z cos(y, z) / 2k)

    where z are the k nearest neighbours of x among the targets, and of y among the sources. Of the
    neighbours in both directions, the pair with the highest score is chosen first (strategy "max"
    of the same section). Search is exact, and its time proportional to the product of the numbers
    of vectors.

    Args:
        sources, targets: Vectors (n, D) and (m, D), one or more.
        neighbours: k, the number of neighbours of each vector.

    Returns:
        The scores (p,), and the indices of the sources and the targets of the pairs, (p,) each.
    """
    require_whole("neighbours", neighbours, 1)
    sources, targets = unit(sources), unit(targets)
    forward, forward_cosines = _neighbours(sources, targets, neighbours)
    backward, backward_cosines = _neighbours(targets, sources, neighbours)
    of_source, of_target = forward_cosines.mean(axis=1), backward_cosines.mean(axis=1)
    x = np.concatenate([np.repeat(np.arange(len(sources)), forward.shape[1]), backward.ravel()])
    y = np.concatenate([forward.ravel(), np.repeat(np.arange(len(targets)), backward.shape[1])])
    pair_cosines = np.concatenate([forward_cosines.ravel(), backward_cosines.ravel()])
    ratios = _ratios(pair_cosines, of_source[x], of_target[y])
    chosen, used_x, used_y = [], np.zeros(len(sources), bool), np.zeros(len(targets), bool)
    for i in np.argsort(-ratios, kind="stable").tolist():
        if not (used_x[x[i]] or used_y[y[i]]):
            used_x[x[i]] = used_y[y[i]] = True
            chosen.append(i)
    return ratios[chosen], x[chosen], y[chosen]


def _ratios(pair_cosines, of_source, of_target):
    """Return cosines divided by the mean cosine of both sides with their neighbours."""
    return pair_cosines / np.maximum((of_source + of_target) / 2, 1e-9)


def _neighbours(queries, candidates, count):
    """Return the indices and cosines of the nearest candidates of each query, (n, k) each."""
    parts = [
        nearest(queries[start : start + BLOCK], candidates, count, "dot")
        for start in range(0, len(queries), BLOCK)
    ]
    indices, scores = zip(*parts, strict=True)
    return np.concatenate(indices), np.concatenate(scores)
