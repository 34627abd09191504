"""`Epochs`: the assignment of pairs or texts to batches, shuffled in each epoch."""

from __future__ import annotations

import numpy as np

from keras_transformer.data.buckets import Buckets
from keras_transformer.data.ragged import Ragged


class Epochs:
    """An assignment of items (pairs or texts) to the batch of each step.

    Steps count over all epochs. The items of a batch depend only on the buckets, the step and the
    seed.

    Args:
        buckets: Buckets of items, one item per row.
        shuffle: Whether to reshuffle in each epoch.
        seed: Seed of the order.
    """

    def __init__(self, buckets: Buckets, shuffle: bool, seed: int):
        self.buckets, self.shuffle, self.seed = buckets, shuffle, seed
        self._batches = [
            (bucket, start)
            for bucket, (rows, *_) in enumerate(buckets.shapes)
            for start in range(0, int(buckets.counts[bucket]), rows)
        ]
        self._planned: tuple[int, tuple[list[Ragged], np.ndarray]] | None = None

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._batches)

    def rows(self, step: int) -> tuple[np.ndarray, int, int]:
        """Return the indices of the items of a step, and S and T, the lengths of its batch."""
        epoch, number = divmod(step, len(self))
        members, order = self._plan(epoch)
        bucket, start = self._batches[order[number]]
        rows, S, T = self.buckets.shapes[bucket]
        return members[bucket].values[start : start + rows], S, T

    def __getstate__(self):
        return {**self.__dict__, "_planned": None}

    def _plan(self, epoch):
        """Return the items of each bucket and the order of the batches; cached for one epoch."""
        planned = self._planned  # read once: threads may request two epochs at a time
        if planned is None or planned[0] != epoch:
            generator = np.random.default_rng((self.seed, epoch)) if self.shuffle else None
            members = self.buckets.shuffled(generator)
            order = generator.permutation(len(self)) if generator else np.arange(len(self))
            planned = self._planned = epoch, (members, order)
        return planned[1]
