"""Training pairs of documents: sentences together with earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

from keras_transformer.text.context import in_context
from keras_transformer.text.tokenizer import checked_pairs

Pairs = list[tuple[str, str]]


def with_context(
    pairs: Sequence[tuple[str, str]], context_sentences: int, alone: bool = True
) -> Pairs:
    """Return pairs whose sides hold a sentence and earlier ones, see `in_context`.

    Args:
        pairs: (source, target) sentences in their order. A pair with an empty side ends a document.
        context_sentences: Number of previous sentences to join to each, at least 1.
        alone: Whether each pair also occurs without context, at the end of the result, so that a
            model translates single sentences, too.

    Raises:
        ValueError: If an item is not a pair of texts, the number is out of range, or a sentence
            contains the separator.
    """
    filled = [pair if all(x.strip() for x in pair) else ("", "") for pair in checked_pairs(pairs)]
    sides = ([pair[i] for pair in filled] for i in (0, 1))
    windows = zip(*(in_context(side, context_sentences) for side in sides), strict=True)
    contexts = [window for window in windows if window[0]]
    return contexts + [pair for pair in filled if pair[0]] if alone else contexts


def separated(pairs: Sequence[tuple[str, str]]) -> Pairs:
    """Return pairs as documents of one sentence, each ended by an empty pair."""
    return [x for pair in pairs for x in (pair, ("", ""))]
