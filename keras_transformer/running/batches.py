"""Batches of texts of similar lengths, and ids up to the end of a text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.config import require_whole
from keras_transformer.text.tokenizer import round_up

MULTIPLE = 16  # with few shapes, lengths are rounded up to multiples of this
_WORTH_A_WORKER = 256  # minimum tokens of a batch when several workers share the texts


def search_batches(
    lengths: Sequence[int],
    tokens_per_batch: int,
    max_length: int,
    few_shapes: bool,
    workers: int = 1,
) -> Iterator[tuple[list[int], int, int]]:
    """Yield batches as (indices into `lengths`, rows, length), the longest texts first.

    (rows, length) is the shape of the padded batch; rows without a text fill it. With few shapes,
    lengths are multiples of 16, at most `max_length`, and rows are powers of two.

    Args:
        lengths: Number of tokens of each text.
        tokens_per_batch: Maximum tokens in a batch, padding included; a single text may have more.
        max_length: The model's `max_length`.
        few_shapes: Whether batches have few shapes, for a backend that compiles each.
        workers: Number of workers that share the texts: each gets a batch if there is enough work.
    """
    require_whole("tokens_per_batch", tokens_per_batch, 1)
    if workers > 1:
        share = max(_WORTH_A_WORKER, -(-sum(lengths) // workers))
        tokens_per_batch = min(tokens_per_batch, share)
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start, multiple = 0, MULTIPLE if few_shapes else 1
    while start < len(order):
        length = min(round_up(lengths[order[start]], multiple), max_length)
        rows = max(1, tokens_per_batch // length)
        if few_shapes:
            rows = 1 << (rows.bit_length() - 1)
        chosen = order[start : start + rows]
        rows = len(chosen)
        if few_shapes:
            rows = 1 << (rows - 1).bit_length()
        yield chosen, rows, length
        start += len(chosen)


def until_end(ids: Iterable[int], eos_ids: Sequence[int]) -> list[int]:
    """Return the ids that precede the first EOS id."""
    return list(itertools.takewhile(lambda x: x not in eos_ids, ids))
