"""From source texts to ranked hypotheses: encode, pad, search, decode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_transformer.decoding import IMPOSSIBLE, uniforms
from keras_transformer.inference.inputs import (
    encoded,
    encoded_prefixes,
    extended,
    most_tokens,
    padded,
)
from keras_transformer.inference.runner import LENGTH_MULTIPLE, Runner, search_batches, until_end
from keras_transformer.inference.search_functions import translation_function
from keras_transformer.models import Transformer
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.tokenizer import checked_texts, round_up


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its text, and the score that it was ranked by.

    The score is the sum of the tokens' log-probabilities, divided by the length penalty.
    """

    text: str
    score: float


def search_texts(
    runner: Runner,
    model: Transformer,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    search: Search,
    prefixes: Sequence[str] | None = None,
    tokens_per_batch: int = 4096,
    strict: bool = False,
    *,
    seed: int = 0,
    constraint: Any = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text, best first; the arguments are those of `Translator`.

    Args:
        runner: Runner that keeps the compiled searches.
        model: The model.
        tokenizer: Its tokenizer.
        texts: Source texts; an empty one gets one empty hypothesis.
        search: Options of the search.
        prefixes: See `Translator.translate`.
        tokens_per_batch: Maximum source tokens per batch, padding included.
        strict: Whether a text that is too long raises ValueError; else it is cut with a warning.
        seed: Seed of `Translator.sample`.
        constraint: See `Translator.translate`.
    """
    texts, config = checked_texts(texts), model.config
    source_ids = encoded(tokenizer, texts, "texts", config.max_length, strict)
    prefix_ids = encoded_prefixes(tokenizer, prefixes, len(texts), config.max_length - 2)
    found = [[Hypothesis("", 0.0)] for _ in source_ids]
    # A text without tokens besides the frame is empty, and so is its translation.
    empty = sum(map(len, tokenizer.source_frame))
    full = [i for i, ids in enumerate(source_ids) if len(ids) > empty]
    lengths = [len(source_ids[i]) for i in full]
    for batch, rows, length in search_batches(lengths, tokens_per_batch, config.max_length):
        chosen = [full[i] for i in batch]
        sources = [source_ids[i] for i in chosen]
        source = padded(sources, rows, length, config.pad_id)
        begun = [prefix_ids[i] for i in chosen]
        prefix, prefix_length = None, max(map(len, begun))
        if prefix_length:
            if prefixes is not None:
                prefix_length = round_up(prefix_length, LENGTH_MULTIPLE)
            prefix = padded(begun, rows, prefix_length, config.pad_id)
        limits = most_tokens(sources, begun, rows, search, config.max_length)
        numbers = first = None
        if search.temperature is not None:
            seeds = [[seed, i] for i in chosen] + [[seed]] * (rows - len(chosen))
            numbers = uniforms(seeds, length + prefix_length + search.max_extra_length)
        if constraint is not None:
            first = constraint.start([texts[i] for i in chosen], limits[: len(chosen)])
            first = {name: extended(x, rows - len(chosen)) for name, x in first.items()}
        ids, scores = runner.arrays(
            model,
            (search, constraint),
            lambda: translation_function(search, model, constraint),
            [source, limits, prefix, numbers, first],
        )
        for i, ids_KL, scores_K in zip(chosen, ids, scores, strict=False):
            found[i] = _hypotheses(ids_KL, scores_K, model, tokenizer)
    return found


def _hypotheses(ids_KL: np.ndarray, scores_K: np.ndarray, model, tokenizer) -> list[Hypothesis]:
    """Decode the beams of a text; beams that were never filled are left out."""
    real_K = scores_K > IMPOSSIBLE / 2
    if not real_K.any():
        raise ValueError("model must give finite logits, got none: are weights NaN?")
    ends = model.config.eos_ids
    texts = tokenizer.decode_target([until_end(ids, ends) for ids in ids_KL[real_K].tolist()])
    scores = map(float, scores_K[real_K])
    return [Hypothesis(text, score) for text, score in zip(texts, scores, strict=True)]
