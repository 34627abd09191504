"""Beam slots grouped by how many tokens of phrases they contain."""

from __future__ import annotations

from typing import Any

from keras import ops

from keras_transformer.backend import gather, quick
from keras_transformer.decoding.phrase_constraint import Phrases
from keras_transformer.decoding.rules import IMPOSSIBLE

_RANK = 1e3  # outweighs differences of sums of log-probabilities


def with_proposals(
    phrases: Phrases, state: Any, values_BKW: Any, tokens_BKW: Any, logits_BKV: Any
) -> tuple[Any, Any]:
    """Return the best tokens of each beam, and the tokens that its phrases need, with their logits.

    Args:
        phrases: The constraint.
        state: State of the constraint, for each beam.
        values_BKW: The highest logits of each beam.
        tokens_BKW: The tokens that have them.
        logits_BKV: All logits.

    Returns:
        Logits and tokens (B, K, W + F), F the number of forms of phrases. The logit of a repeated
        token, or of one that may not be taken, is `IMPOSSIBLE`.
    """
    needed_BKF = phrases.proposals(state)
    value_BKF = gather(logits_BKV, quick.maximum(needed_BKF, 0), axis=2)
    ids_BKC = quick.concatenate([tokens_BKW, needed_BKF], axis=2)
    values_BKC = quick.concatenate([values_BKW, quick.cast(value_BKF, "float32")], axis=2)
    # Several forms may need the same token, or one of the best: only its first occurrence counts.
    size = quick.shape(ids_BKC)[2]
    same_BKCC = ops.equal(ops.expand_dims(ids_BKC, 3), ops.expand_dims(ids_BKC, 2))
    is_earlier_CC = ops.arange(size)[:, None] > ops.arange(size)[None]
    repeats_BKC = ops.any(ops.logical_and(same_BKCC, is_earlier_CC), axis=3)
    needed_BKCF = ops.equal(ops.expand_dims(ids_BKC, 3), ops.expand_dims(needed_BKF, 2))
    tokens_BKC = quick.maximum(ids_BKC, 0)
    may_follow_BKC = phrases.fits(state, tokens_BKC, ops.any(needed_BKCF, axis=3))
    may_follow_BKC = may_follow_BKC & (ids_BKC >= 0) & ~repeats_BKC
    return quick.where(may_follow_BKC, values_BKC, IMPOSSIBLE), tokens_BKC


def in_turn(total_BE: Any, progress_BE: Any) -> Any:
    """Return sort keys (B, E), highest first: the best of each bank, then the second best of each.

    A bank holds the extensions with the same progress. So hypotheses that have begun a phrase,
    which are less probable at first, compete only with each other (Post and Vilar 2018, section 3).

    Args:
        total_BE: Sums of log-probabilities of the E extensions of a row.
        progress_BE: Number of phrase tokens that each has met.
    """
    size = quick.shape(total_BE)[1]
    first_BEE, second_BEE = ops.expand_dims(total_BE, 2), ops.expand_dims(total_BE, 1)
    earlier_EE = ops.arange(size)[:, None] > ops.arange(size)[None]
    ties = ops.logical_and(ops.equal(first_BEE, second_BEE), earlier_EE)
    better_BEE = ops.logical_or(second_BEE > first_BEE, ties)
    same_BEE = ops.equal(ops.expand_dims(progress_BE, 2), ops.expand_dims(progress_BE, 1))
    ranks_BE = ops.sum(ops.cast(ops.logical_and(better_BEE, same_BEE), "float32"), axis=2)
    margin_BE = quick.maximum(total_BE - ops.max(total_BE, axis=1, keepdims=True), -_RANK)
    return quick.where(total_BE > IMPOSSIBLE / 2, margin_BE - _RANK * ranks_BE, IMPOSSIBLE)


def best_of_all(phrases: Phrases, state: Any, total_BK: Any) -> tuple[Any, Any]:
    """Return the highest sums (B,) of all beams, and of those that have met all phrases."""
    complete_BK = quick.where(phrases.is_complete(state), total_BK, IMPOSSIBLE)
    return ops.max(total_BK, axis=1), ops.max(complete_BK, axis=1)
