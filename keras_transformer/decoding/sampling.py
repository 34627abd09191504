"""Random choice of the next token: temperature, and top-k, nucleus, min-p, epsilon sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.backend import gather
from keras_transformer.decoding.rules import IMPOSSIBLE


def uniforms(row_seeds: list[list[int]], length: int) -> np.ndarray:
    """Return the random numbers of a sampling search, one seed per row: (B, length) float32.

    They are drawn in advance with NumPy: a seed gives the same numbers on every backend, and the
    other rows of a batch do not change those of a row.

    Args:
        row_seeds: B seeds, each a list of whole numbers.
        length: Numbers per row.
    """
    rows = [np.random.default_rng(seed).random(length, dtype=np.float32) for seed in row_seeds]
    return np.stack(rows)


def sampler(
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    epsilon_cutoff: float = 0.0,
) -> Callable:
    """Return a `choose` for `greedy_loop` that samples from the model's distribution.

    Args:
        temperature: Divides the logits; above 0. Below 1 probable tokens become more probable.
        top_k: Sample from this many most probable tokens (Fan et al. 2018); 0: all.
        top_p: Sample from the most probable tokens that together reach this probability, in (0, 1]
            (Holtzman et al. 2020).
        min_p: Sample from tokens with at least this share of the highest probability, in [0, 1]
            (Nguyen et al. 2024).
        epsilon_cutoff: Sample from tokens with at least this probability among those that the
            options above keep, in [0, 1), or from the most probable one (Hewitt et al. 2022).

    Returns:
        `choose(log_probs_BV, uniform_B) -> token ids (B,)`, with `uniform_B` in [0, 1).
    """

    def choose(log_probs_BV, uniform_B):
        size = log_probs_BV.shape[-1]
        sorted_BC, tokens_BC = ops.top_k(log_probs_BV / temperature, min(top_k or size, size))
        return _drawn(sorted_BC, tokens_BC, uniform_B, top_p, min_p, epsilon_cutoff)

    return choose


def sample_rows(
    log_probs_BV: Any,
    uniform_B: Any,
    *,
    temperature_B: Any,
    top_k_B: Any,
    top_p_B: Any,
    min_p_B: Any,
    epsilon_cutoff_B: Any,
) -> Any:
    """Return the tokens (B,) that `sampler` chooses, where each row has its own options."""
    size = log_probs_BV.shape[-1]
    sorted_BV, tokens_BV = ops.top_k(log_probs_BV / temperature_B[:, None], size)
    most_B = ops.where(top_k_B == 0, size, top_k_B)
    is_in_BV = ops.arange(size, dtype="int32") < most_B[:, None]
    sorted_BV = ops.where(is_in_BV, sorted_BV, IMPOSSIBLE)
    limits = (x[:, None] for x in (top_p_B, min_p_B, epsilon_cutoff_B))
    return _drawn(sorted_BV, tokens_BV, uniform_B, *limits)


def _drawn(sorted_BC, tokens_BC, uniform_B, top_p, min_p, epsilon_cutoff):
    """Return a token of each row; logits and tokens (B, C) are sorted by probability."""
    # Keras warns about a softmax over an axis of size 1.
    probs_BC = ops.ones_like(sorted_BC) if sorted_BC.shape[-1] == 1 else ops.softmax(sorted_BC)
    up_to_BC = ops.cumsum(probs_BC, axis=-1)
    # A token is in the nucleus if more probable ones do not reach top_p: the first always is.
    probs_BC = ops.where(up_to_BC - probs_BC < top_p, probs_BC, 0.0)
    probs_BC = ops.where(probs_BC >= min_p * probs_BC[:, :1], probs_BC, 0.0)
    least_B1 = epsilon_cutoff * ops.sum(probs_BC, axis=-1, keepdims=True)
    probs_BC = ops.where(probs_BC >= ops.minimum(least_B1, probs_BC[:, :1]), probs_BC, 0.0)
    up_to_BC = ops.cumsum(probs_BC, axis=-1)
    drawn_B1 = uniform_B[:, None] * up_to_BC[:, -1:]
    # Inverse of the cumulative distribution, at most the last nucleus token despite rounding.
    index_B = ops.sum(ops.cast(up_to_BC <= drawn_B1, "int32"), axis=-1)
    last_B = ops.sum(ops.cast(probs_BC > 0, "int32"), axis=-1) - 1
    index_B = ops.minimum(index_B, last_B)
    return gather(tokens_BC, index_B[:, None], axis=1)[:, 0]
