"""Vectors that are similar to others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

BLOCK = 1024  # vectors on each side whose similarities are in memory at a time


@dataclass(frozen=True)
class Match:
    """A candidate, by its index, and its score, which is higher for better ones.

    The cosine in [-1, 1], or of models that say so the dot product, or the negative distance.
    """

    index: int
    score: float


def unit(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (n, D) of length 1; those of zeros stay."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


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
    """Return the indices and the scores (n, k) of the most similar candidates of each query."""
    best_scores = np.empty((len(queries), 0), "float32")
    best = np.empty((len(queries), 0), "int64")
    for start in range(0, len(candidates), BLOCK):
        block = candidates[start : start + BLOCK].astype("float32")
        indices = np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))
        best = np.concatenate([best, indices], axis=1)
        best_scores = np.concatenate([best_scores, scores(queries, block, similarity)], axis=1)
        if best.shape[1] > top_k:
            kept = np.argpartition(-best_scores, top_k - 1, axis=1)[:, :top_k]
            best, best_scores = (np.take_along_axis(x, kept, 1) for x in (best, best_scores))
    order = np.lexsort((best, -best_scores))
    return np.take_along_axis(best, order, 1), np.take_along_axis(best_scores, order, 1)


def scores(queries: np.ndarray, candidates: np.ndarray, similarity: str) -> np.ndarray:
    """Return the similarity (n, m) of vectors (n, D) and (m, D); of distances the negative."""
    if similarity == "dot":
        return queries @ candidates.T
    if similarity == "cosine":
        return unit(queries) @ unit(candidates).T
    order = 1 if similarity == "manhattan" else 2
    rows = [np.linalg.norm(candidates - one, order, axis=1) for one in queries]
    return -np.array(rows, "float32").reshape(len(queries), len(candidates))
