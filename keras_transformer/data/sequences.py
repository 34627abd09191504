"""Batches of single texts for encoders: ids with labels, or ids of which some are masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_transformer.config import require, require_whole
from keras_transformer.data.buckets import Buckets
from keras_transformer.data.masking import Masking
from keras_transformer.data.ragged import Ragged
from keras_transformer.data.streaming import Stream, for_keras


class SequenceBatches:
    """Batches of texts of similar length, padded to a few shapes.

    The batch of a step depends on the step and the seed alone; each epoch has another order.

    Args:
        sequences: token ids of each text; what is longer than `max_length` loses its end.
        labels: a number for each text, or as many as it has tokens; or a `Masking`, which draws
            inputs and labels anew in each step.
        tokens_per_batch: cells of a batch, padding included; at least `max_length`.
        max_length: longest text in tokens.
        num_buckets: most lengths that batches have.
        pad_id: what pads ids.
        pad_label: what pads labels of tokens, an int32; None: `pad_id`, as for all other labels.
        shuffle: whether each epoch has an order of its own.
        seed: of the order and the masks.

    Attributes:
        lengths: the length of each bucket's batches.

    Raises:
        ValueError: if there are no texts, one is empty, labels are fewer or more, a number is out
            of range, labels that are not of tokens have a `pad_label`, or a `Masking` has another
            `pad_id`.
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
            raise ValueError("sequences must be one or more, none of them empty")
        self.masking = labels if isinstance(labels, Masking) else None
        if not self.masking and len(labels) != len(sequences):
            raise ValueError(f"labels must be {len(sequences)}, as sequences, got {len(labels)}")
        self.pad_id, self.shuffle, self.seed = pad_id, shuffle, seed
        self.pad_label = pad_id if pad_label is None else pad_label
        self._ids = Ragged.pack([ids[:max_length] for ids in sequences])
        self._labels = None if self.masking else _packed(labels, self._ids.lengths)
        if isinstance(self._labels, Ragged):
            whole = isinstance(self.pad_label, int | np.integer) and abs(self.pad_label) < 2**31
            require(whole, "pad_label", pad_label, "an int32 or None")
        else:
            require(pad_label is None, "pad_label", pad_label, "None: no label is a token's")
        if self.masking:
            masks = self.masking.pad_id
            require(masks == pad_id, "pad_id", pad_id, f"{masks}, as of the Masking")
        self._planned = None
        lengths = self._ids.lengths
        self._buckets = Buckets(lengths, lengths, tokens_per_batch, num_buckets, max_length)
        self.lengths = tuple(length for _, length, _ in self._buckets.shapes)
        self._batches = [
            (bucket, start)
            for bucket, (rows, *_) in enumerate(self._buckets.shapes)
            for start in range(0, int(self._buckets.counts[bucket]), rows)
        ]

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._batches)

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The batch of a step, counted over all epochs: `token_ids` (B, T), and labels."""
        epoch, number = divmod(step, len(self))
        members, order = self._plan(epoch)
        bucket, start = self._batches[order[number]]
        rows, length, _ = self._buckets.shapes[bucket]
        chosen = members[bucket].values[start : start + rows]
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
        """Return the batches in the form that `fit` and `evaluate` take on this backend."""
        return for_keras(Stream(self.batch, first_step, steps, num_workers))

    def __getstate__(self):
        return {**self.__dict__, "_planned": None}

    def _plan(self, epoch):
        """The texts of each bucket and the order of the batches, kept for the steps that follow."""
        planned = self._planned  # one read: threads may ask for two epochs at once
        if planned is None or planned[0] != epoch:
            generator = np.random.default_rng((self.seed, epoch)) if self.shuffle else None
            members = self._buckets.shuffled(generator)
            order = generator.permutation(len(self)) if self.shuffle else range(len(self))
            planned = self._planned = epoch, (members, order)
        return planned[1]


def _packed(labels, lengths):
    if np.ndim(labels[0]) == 0:
        return np.asarray(labels)
    packed = Ragged.pack(
        [own[:length] for own, length in zip(labels, lengths.tolist(), strict=True)]
    )
    if wrong := np.flatnonzero(packed.lengths != lengths).tolist():
        at = wrong[0]
        raise ValueError(
            f"labels of text {at} must be {lengths[at]}, as its tokens, got {packed.lengths[at]}"
        )
    return packed
