"""Batches of pairs of texts, such as translations, for encoders of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.buckets import Buckets
from keras_transformer.data.epochs import Epochs
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.ragged import Ragged


class TextPairBatches:
    """Batches of pairs for `ContrastiveLoss`: rows 2i and 2i + 1 are the texts of pair i.

    The batch of a step depends only on the step and the seed.

    Args:
        sources, targets: Token ids of the texts of each pair, at most `max_length`.
        teacher: Vectors (N, E) that both texts of each pair are to have, as labels; None: the
            labels number the texts of a batch, equal texts alike.
        tokens_per_batch: Maximum cells per side of a batch, padding included; at least
            `max_length`.
        max_length: Maximum tokens of a text.
        num_buckets: Maximum number of batch shapes.
        pad_id: Padding id.
        shuffle: Whether to reshuffle in each epoch.
        seed: Seed of the order.

    Raises:
        ValueError: If there are no pairs, their sides or teacher's vectors differ in number, a text
            is empty or too long, or a number is out of range.
    """

    def __init__(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        teacher: np.ndarray | None = None,
        tokens_per_batch: int = 4096,
        max_length: int = 128,
        num_buckets: int = 6,
        pad_id: int = 0,
        shuffle: bool = True,
        seed: int = 0,
    ):
        require_whole("max_length", max_length, 1)
        require_whole("tokens_per_batch", tokens_per_batch, max_length)
        require_whole("num_buckets", num_buckets, 1)
        sizes = len(sources), len(targets), len(sources if teacher is None else teacher)
        alike = len({*sizes}) == 1 and sizes[0] > 0
        require(alike, "the numbers of sources, targets and vectors", sizes, "equal and above 0")
        self.pad_id = pad_id
        self._sides = Ragged.pack(sources), Ragged.pack(targets)
        lengths = [x.lengths for x in self._sides]
        shortest, longest = np.minimum(*lengths), np.maximum(*lengths)
        in_range = shortest.min() > 0 and longest.max() <= max_length
        accepted = f"from 1 to max_length={max_length}"
        require(in_range, "tokens of a text", [shortest.min(), longest.max()], accepted)
        self._teacher = teacher
        numbers: dict[bytes, int] = {}
        self._numbers = np.array(
            [
                [numbers.setdefault(ids.astype("int32").tobytes(), len(numbers)) for ids in side]
                for side in self._sides
            ]
        )
        buckets = Buckets(longest, longest, tokens_per_batch, num_buckets, max_length)
        self._epochs = Epochs(buckets, shuffle, seed)

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._epochs)

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the inputs `token_ids` (2B, T), and the labels (2B,) or (2B, E), of a step."""
        chosen, length, _ = self._epochs.rows(step)
        shape = len(chosen), length, self.pad_id
        ids_B2T = np.stack([side.take(chosen).padded(*shape) for side in self._sides], axis=1)
        if self._teacher is not None:
            labels = np.repeat(self._teacher[chosen], 2, axis=0)
        else:
            numbers_R = self._numbers[:, chosen].T.reshape(-1)
            labels = np.unique(numbers_R, return_inverse=True)[1].astype("int32")
        return {"token_ids": ids_B2T.reshape(-1, length)}, labels

    def dataset(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Any:
        """Return the batches of pairs for `fit`, see `TokenBatches.dataset`."""
        return for_keras(Stream(self.batch, first_step, steps, num_workers))
