"""Scores of parallel text by two translation models, one per direction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.evaluation.assess import log_probabilities
from keras_transformer.running.scoring import same_number
from keras_transformer.translate.translator import Translator


def dual_scores(
    forward: Translator,
    reverse: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """Return how well each pair translates each other, by dual conditional cross-entropy.

        score = exp(-(|h(y | x) - h(x | y)| + (h(y | x) + h(x | y)) / 2))

    h is the cross-entropy per token, EOS included, in nats, of a model of one direction each
    (Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel Corpora",
    section 3). A pair scores high if both models find it likely, and equally so. Scores of
    different models cannot be compared.

    Args:
        forward: Translator from the sources' language to the targets'.
        reverse: Translator of the other direction.
        sources: Source texts.
        targets: Target texts, one per source.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.

    Returns:
        Array (pairs,) of scores in (0, 1]; 0 where a text is longer than the `max_length` of a
        model.

    Raises:
        ValueError: If the numbers of texts differ, or `reverse` does not translate the other way.
    """
    same_number(sources, targets)
    ours, theirs = ((x.source_language, x.target_language) for x in (forward, reverse))
    if None not in (*ours, *theirs) and theirs != ours[::-1]:
        raise ValueError(
            f"reverse must translate from {ours[1]} to {ours[0]}, the other way than forward; it "
            f"translates from {theirs[0]} to {theirs[1]}"
        )
    one = cross_entropies(forward, sources, targets, tokens_per_batch=tokens_per_batch)
    other = cross_entropies(reverse, targets, sources, tokens_per_batch=tokens_per_batch)
    scores = np.zeros(len(one))
    known = np.isfinite(one) & np.isfinite(other)
    one, other = one[known], other[known]
    scores[known] = np.exp(-(np.abs(one - other) + (one + other) / 2))
    return scores


def cross_entropies(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """Return -log p(target | source) per token of the target, EOS included, in nats.

    Infinity where a text is longer than the model's `max_length`.

    Args:
        translator: The translator.
        sources, targets, tokens_per_batch: See `Translator.score`.
    """
    totals, counts = log_probabilities(translator, sources, targets, tokens_per_batch)
    return np.where(np.isnan(totals), np.inf, -totals / counts)
