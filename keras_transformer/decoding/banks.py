"""Beams that have met more of their phrases than others, side by side in one search."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend import gather, quick
from keras_transformer.decoding.phrases import Phrases
from keras_transformer.decoding.rules import IMPOSSIBLE

_RANK = 1e3  # outweighs differences of sums of log-probabilities


def with_proposals(
    phrases: Phrases, state: Any, values_BKW: Any, tokens_BKW: Any, logits_BKV: Any
) -> tuple[Any, Any]:
    """Return the best tokens of each beam and those that its phrases need, with their logits.

    Args:
        phrases: The constraint.
        state: Its state, of each beam.
        values_BKW: The highest logits of each beam.
        tokens_BKW: The tokens that have them.
        logits_BKV: All logits.

    Returns:
        Logits and tokens (B, K, W + F), each token once; `IMPOSSIBLE` for those that may not be
        taken.
    """
    needed_BKF = phrases.proposals(state)
    value_BKF = gather(logits_BKV, quick.maximum(needed_BKF, 0), axis=2)
    both_BKC = quick.concatenate([tokens_BKW, needed_BKF], axis=2)
    values_BKC = quick.concatenate([values_BKW, quick.cast(value_BKF, "float32")], axis=2)
    # A token that several forms need, or that is among the best, counts where it comes first.
    size = quick.shape(both_BKC)[2]
    same_BKCC = ops.equal(ops.expand_dims(both_BKC, 3), ops.expand_dims(both_BKC, 2))
    is_earlier_CC = ops.arange(size)[:, None] > ops.arange(size)[None]
    repeats_BKC = ops.any(ops.logical_and(same_BKCC, is_earlier_CC), axis=3)
    needed_BKCF = ops.equal(ops.expand_dims(both_BKC, 3), ops.expand_dims(needed_BKF, 2))
    tokens_BKC = quick.maximum(both_BKC, 0)
    fits_BKC = phrases.fits(state, tokens_BKC, ops.any(needed_BKCF, axis=3))
    fits_BKC = fits_BKC & (both_BKC >= 0) & ~repeats_BKC
    return quick.where(fits_BKC, values_BKC, IMPOSSIBLE), tokens_BKC


def in_turn(total_BM: Any, progress_BM: Any) -> Any:
    """Return keys by which the best of each bank come first, then the second best of each, ...

    A bank holds the extensions with the same progress. So hypotheses that have begun a phrase,
    which are less probable at first, are compared with their like (Post and Vilar 2018, section 3).

    Args:
        total_BM: Sums of log-probabilities of the extensions.
        progress_BM: Tokens of phrases that each has met.
    """
    size = quick.shape(total_BM)[1]
    first_BMM, second_BMM = ops.expand_dims(total_BM, 2), ops.expand_dims(total_BM, 1)
    earlier_MM = ops.arange(size)[:, None] > ops.arange(size)[None]
    ties = ops.logical_and(ops.equal(first_BMM, second_BMM), earlier_MM)
    better_BMM = ops.logical_or(second_BMM > first_BMM, ties)
    like_BMM = ops.equal(ops.expand_dims(progress_BM, 2), ops.expand_dims(progress_BM, 1))
    ranks_BM = ops.sum(ops.cast(ops.logical_and(better_BMM, like_BMM), "float32"), axis=2)
    behind_BM = quick.maximum(total_BM - ops.max(total_BM, axis=1, keepdims=True), -_RANK)
    return quick.where(total_BM > IMPOSSIBLE / 2, behind_BM - _RANK * ranks_BM, IMPOSSIBLE)


def best_of_all(phrases: Phrases, state: Any, total_BK: Any) -> tuple[Any, Any]:
    """Return the highest sum of log-probabilities, and that of beams that have met all phrases."""
    whole_BK = quick.where(phrases.is_complete(state), total_BK, IMPOSSIBLE)
    return ops.max(total_BK, axis=1), ops.max(whole_BK, axis=1)
