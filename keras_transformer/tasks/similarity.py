"""Search for the vectors that are most similar to a query, by exact comparison."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK = 1024  # queries and candidates that are compared at a time, to limit memory


@dataclass(frozen=True)
class Match:
    """A candidate and its score; higher is better.

    Args:
        index: Index of the candidate.
        score: Its score. From `matches`: the cosine in [-1, 1], the dot product or the negative
            distance, depending on the model. From `TextScorer`: the score of the pair.
    """

    index: int
    score: float


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, D) scaled to norm 1; zero vectors stay zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each vector (n, D) with that in the same row of the others, (n,)."""
    return np.sum(unit(one) * unit(other), axis=1)


def matches(
    queries: np.ndarray, candidates: np.ndarray, top_k: int, similarity: str = "cosine"
) -> list[list[Match]]:
    """Return the candidates that are most similar to each query, best first.

    Args:
        queries: Vectors (n, D).
        candidates: Vectors (m, D).
        top_k: Number of candidates per query; all if there are fewer.
        similarity: One of `models.sentence.SIMILARITIES`.
    """
    return [
        [Match(int(index), float(score)) for index, score in zip(*row, strict=True)]
        for start in range(0, len(queries), BLOCK)
        for row in zip(
            *nearest(queries[start : start + BLOCK], candidates, top_k, similarity), strict=True
        )
    ]


def nearest(
    queries: np.ndarray, candidates: np.ndarray, top_k: int, similarity: str = "cosine"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most similar candidates of each query, best first, as arrays.

    The arguments are those of `matches`.

    Returns:
        The indices (n, k) and the scores (n, k), where k is `top_k` or less.
    """
    best_scores = np.empty((len(queries), 0), "float32")
    best = np.empty((len(queries), 0), "int64")
    for start in range(0, len(candidates), BLOCK):
        block = candidates[start : start + BLOCK].astype("float32")
        indices, found = np.arange(start, start + len(block)), scores(queries, block, similarity)
        if best.shape[1] == top_k:  # few of the later candidates are among the best of any query
            better = (found > best_scores.min(axis=1, keepdims=True)).any(axis=0)
            indices, found = indices[better], found[:, better]
        best = np.concatenate([best, np.broadcast_to(indices, found.shape)], axis=1)
        best_scores = np.concatenate([best_scores, found], axis=1)
        if best.shape[1] > top_k:
            kept = np.argpartition(-best_scores, top_k - 1, axis=1)[:, :top_k]
            best, best_scores = (np.take_along_axis(x, kept, 1) for x in (best, best_scores))
    order = np.lexsort((best, -best_scores))
    return np.take_along_axis(best, order, 1), np.take_along_axis(best_scores, order, 1)


def scores(queries: np.ndarray, candidates: np.ndarray, similarity: str) -> np.ndarray:
    """Return the similarities (n, m) of each query (n, D) and candidate (m, D).

    For "euclidean" and "manhattan" they are negative distances.
    """
    if similarity == "dot":
        return queries @ candidates.T
    if similarity == "cosine":
        return unit(queries) @ unit(candidates).T
    order = 1 if similarity == "manhattan" else 2
    rows = [np.linalg.norm(candidates - query, order, axis=1) for query in queries]
    return -np.array(rows, "float32").reshape(len(queries), len(candidates))
