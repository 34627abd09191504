"""Log-probabilities of given translations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.backend import COMPILES_EACH_SHAPE
from keras_transformer.models import Transformer
from keras_transformer.running.batches import search_batches
from keras_transformer.running.inputs import encoded_pairs, padded, same_number
from keras_transformer.running.runner import Runner, score_function
from keras_transformer.text import Tokenizer


def score_pairs(
    runner: Runner,
    model: Transformer,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    targets: Sequence[str],
    tokens_per_batch: int = 4096,
) -> list[float]:
    """Return log p(target | source) of each pair, summed over the target's tokens and its EOS.

    Tokens that all targets begin with, such as a language, do not count.

    Args:
        runner: Runner that keeps the compiled function.
        model: The model.
        tokenizer: Its tokenizer.
        sources: Source texts.
        targets: Target texts, one per source.
        tokens_per_batch: Maximum tokens per side of a batch, padding included.

    Raises:
        ValueError: If the numbers of texts differ, or a text is longer than the model's
            `max_length`.
    """
    limit, pad_id = model.config.max_length, model.config.pad_id
    source_ids, target_ids = encoded_pairs(tokenizer, sources, targets, limit)
    same_number(source_ids, target_ids)

    def make() -> Callable:
        # One function serves all languages: each has the same number of forced first tokens.
        return score_function(model, len(tokenizer.target_frame.before))

    scores = np.zeros(len(source_ids))
    longest = [max(len(s), len(t)) for s, t in zip(source_ids, target_ids, strict=True)]
    for chosen, rows, length in search_batches(
        longest, tokens_per_batch, limit, COMPILES_EACH_SHAPE
    ):
        source = padded([source_ids[i] for i in chosen], rows, length, pad_id)
        labels = padded([target_ids[i] for i in chosen], rows, length, pad_id)
        (result,) = runner.arrays(model, "score", make, [source, labels], varying=(0, 1))
        scores[chosen] = result[: len(chosen)]
    return scores.tolist()
