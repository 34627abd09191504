"""Prefixes of training pairs, for drafts of sentences that have not ended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.config import is_number, require
from keras_transformer.text.tokenizer import checked_pairs
from keras_transformer.text.word_spans import join_words, split_words

Pairs = list[tuple[str, str]]


def with_prefixes(pairs: Sequence[tuple[str, str]], share: float, seed: int = 0) -> Pairs:
    """Return training pairs, and prefixes of some of them.

    A prefix pair has the first words of a source, a number drawn at random, and the same proportion
    of the words of its target (Niehues et al. 2018, "Low-Latency Neural Speech Translation",
    section 3.2). The translator learns that the translation of an unfinished source is unfinished.

    Args:
        pairs: (source, target) texts.
        share: Share of the pairs that also occur as a prefix, in [0, 1].
        seed: Seed of the draws.

    Returns:
        The pairs; after each one that was chosen, its prefix pair. Pairs of a single source word
        have none.

    Raises:
        ValueError: If `share` is out of range or an item is not a pair of texts.
    """
    require(is_number(share) and 0 <= share <= 1, "share", share, "in [0, 1]")
    pairs = checked_pairs(pairs)
    rng, results = np.random.default_rng([seed, 1]), list[tuple[str, str]]()
    for pair, is_chosen in zip(pairs, rng.random(len(pairs)) < share, strict=True):
        results.append(pair)
        source, target = map(split_words, pair)
        if is_chosen and len(source) > 1 and target:
            count = int(rng.integers(1, len(source)))
            kept = max(1, round(count / len(source) * len(target)))
            results.append((join_words(source[:count]), join_words(target[:kept])))
    return results
