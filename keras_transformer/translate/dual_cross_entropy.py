"""Scores of sentence pairs by two translators, one per direction, for filtering parallel text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.evaluation.assess import log_probabilities
from keras_transformer.running.inputs import same_number
from keras_transformer.translate.translator import Translator


def dual_scores(
    forward: Translator,
    reverse: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """Return how likely each pair is a translation, by dual conditional cross-entropy.

        score = exp(-(|h(y | x) - h(x | y)| + (h(y | x) + h(x | y)) / 2))

    h is the cross-entropy per token in nats, EOS included: h(y | x) of `forward`, h(x | y) of
    `reverse` (Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel
    Corpora", section 3). A pair scores high if both models find it likely, and about equally
    likely. Scores of different models cannot be compared.

    Args:
        forward: Translator from the sources' language to the targets'.
        reverse: Translator from the targets' language to the sources'.
        sources: Source texts.
        targets: Target texts, one per source.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.

    Returns:
        Scores (N,) in (0, 1]; 0 if a text is longer than the `max_length` of a model.

    Raises:
        ValueError: If the numbers of texts differ, or `reverse` does not translate the other way.
    """
    same_number(sources, targets)
    pair, reverse_pair = ((x.source_language, x.target_language) for x in (forward, reverse))
    if None not in (*pair, *reverse_pair) and reverse_pair != pair[::-1]:
        raise ValueError(
            f"reverse must translate from {pair[1]} to {pair[0]}, the other way than forward; it "
            f"translates from {reverse_pair[0]} to {reverse_pair[1]}"
        )
    costs = cross_entropies(forward, sources, targets, tokens_per_batch=tokens_per_batch)
    reverse_costs = cross_entropies(reverse, targets, sources, tokens_per_batch=tokens_per_batch)
    scores = np.zeros(len(costs))
    known = np.isfinite(costs) & np.isfinite(reverse_costs)
    costs, reverse_costs = costs[known], reverse_costs[known]
    scores[known] = np.exp(-(np.abs(costs - reverse_costs) + (costs + reverse_costs) / 2))
    return scores


def cross_entropies(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    tokens_per_batch: int = 4096,
) -> np.ndarray:
    """Return -log p(target | source) per token of the target, EOS included, in nats.

    Args:
        translator: The translator.
        sources, targets, tokens_per_batch: See `Translator.score`.

    Returns:
        Array (N,); infinity if a text is longer than the model's `max_length`.
    """
    totals, counts = log_probabilities(translator, sources, targets, tokens_per_batch)
    return np.where(np.isnan(totals), np.inf, -totals / counts)
