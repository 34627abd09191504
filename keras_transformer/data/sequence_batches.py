"""Batches of single texts for encoders: token ids with labels, or with masked tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.buckets import Buckets
from keras_transformer.data.epochs import Epochs
from keras_transformer.data.masking import Masking
from keras_transformer.data.prefetching import Stream, for_keras
from keras_transformer.data.ragged import Ragged


class SequenceBatches:
    """Batches of texts of similar length, padded to a few shapes.

    The batch of a step depends only on the step and the seed.

    Args:
        sequences: Token ids of each text, at most `max_length`. The argument `max_length` of
            `TextTokenizer.encode` truncates longer texts.
        labels: One number per text; a sequence of integers or floats per text, one for each token;
            or a `Masking`, which draws inputs and labels anew in each step.
        tokens_per_batch: Maximum cells of a batch, padding included; at least `max_length`.
        max_length: Maximum tokens per text.
        num_buckets: Maximum number of different batch lengths.
        pad_id: Padding id.
        pad_label: Padding of integer labels of tokens, an int32; None: `pad_id`. Must be None for
            other labels; float labels of tokens are padded with NaN.
        shuffle: Whether to reshuffle in each epoch.
        seed: Seed of the order and the masks.

    Attributes:
        lengths: Batch length of each bucket.

    Raises:
        ValueError: If there are no texts, a text is empty or too long, the number of labels is
            wrong, a number is out of range, `pad_label` is given but does not apply, or a `Masking`
            has another `pad_id`.
    """

    def __init__(
        self,
        sequences: Sequence[Sequence[int]],
        labels: Sequence[Any] | Masking,
        tokens_per_batch: int = 4096,
        max_length: int = 512,
        num_buckets: int = 6,
        pad_id: int = 0,
        pad_label: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
    ):
        require_whole("max_length", max_length, 1)
        require_whole("tokens_per_batch", tokens_per_batch, max_length)
        require_whole("num_buckets", num_buckets, 1)
        if not len(sequences) or not all(map(len, sequences)):
            raise ValueError("sequences must hold at least one text, and no empty one")
        longest = max(range(len(sequences)), key=lambda i: len(sequences[i]))
        accepted = f"at most max_length={max_length}: cut them in `TextTokenizer.encode`"
        size = len(sequences[longest])
        require(size <= max_length, f"tokens of sequences[{longest}]", size, accepted)
        self.masking = labels if isinstance(labels, Masking) else None
        if not isinstance(labels, Masking) and len(labels) != len(sequences):
            raise ValueError(f"labels must be {len(sequences)}, one per text, got {len(labels)}")
        self.pad_id, self.seed = pad_id, seed
        self.pad_label: float = pad_id if pad_label is None else pad_label
        self._ids = Ragged.pack(sequences)
        lengths = self._ids.lengths
        self._labels = np.empty(0) if isinstance(labels, Masking) else _packed(labels, lengths)
        if isinstance(self._labels, Ragged) and self._labels.values.dtype == np.float32:
            require(pad_label is None, "pad_label", pad_label, "None for labels of float32")
            self.pad_label = np.nan
        elif isinstance(self._labels, Ragged):
            whole = isinstance(self.pad_label, int | np.integer) and abs(self.pad_label) < 2**31
            require(whole, "pad_label", pad_label, "an int32 or None")
        else:
            require(pad_label is None, "pad_label", pad_label, "None unless labels are per token")
        if self.masking:
            masks = self.masking.pad_id
            require(masks == pad_id, "pad_id", pad_id, f"{masks}, that of the Masking")
        buckets = Buckets(lengths, lengths, tokens_per_batch, num_buckets, max_length)
        self.lengths = tuple(length for _, length, _ in buckets.shapes)
        self._epochs = Epochs(buckets, shuffle, seed)

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._epochs)

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the inputs `token_ids` (B, T) and the labels of a step.

        Args:
            step: Number of the step; steps count from 0 over all epochs.

        Returns:
            The inputs, and labels (B,) for labels of texts, (B, T) for labels of tokens or a
            `Masking`.
        """
        chosen, length, _ = self._epochs.rows(step)
        ids_BT = self._ids.take(chosen).padded(len(chosen), length, self.pad_id)
        if self.masking:
            masked_BT, labels_BT = self.masking(ids_BT, np.random.default_rng((self.seed, step, 1)))
            return {"token_ids": masked_BT}, labels_BT
        if isinstance(self._labels, Ragged):
            labels = self._labels.take(chosen).padded(len(chosen), length, self.pad_label)
        else:
            labels = self._labels[chosen]
        return {"token_ids": ids_BT}, labels

    def dataset(self, first_step: int = 0, steps: int | None = None, num_workers: int = 0) -> Any:
        """Return the batches of texts for `fit`, see `TokenBatches.dataset`."""
        return for_keras(Stream(self.batch, first_step, steps, num_workers))


def _packed(labels: Sequence[Any], lengths: np.ndarray) -> np.ndarray | Ragged:
    """Return labels of texts as an array, or labels of tokens as `Ragged`."""
    if np.ndim(labels[0]) == 0:
        return np.asarray(labels)
    is_real = np.asarray(labels[0]).dtype.kind == "f"
    packed = Ragged.pack(labels, np.float32 if is_real else np.int32)
    if wrong := np.flatnonzero(packed.lengths != lengths).tolist():
        at = wrong[0]
        raise ValueError(
            f"labels of text {at} must be {lengths[at]}, one per token, got {packed.lengths[at]}"
        )
    return packed
