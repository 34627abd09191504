"""Packing: which sentence pairs share a row, so that rows of one length are nearly full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.data.buckets import MULTIPLE, batched
from keras_transformer.data.ragged import Ragged


class Packing:
    """Pairs in rows of one shape, several in each.

    The side with more tokens in all has rows of `packed_length`, the other side shorter ones in
    proportion. Which lengths share a row is decided once, so that all epochs have as many rows;
    in each epoch pairs of the same lengths change places, and the rows theirs.

    Args:
        lengths: tokens of each pair's source; of each pair's target.
        planned: for each side, a function from lengths to what they are to have room for.
        packed_length: the length of the longer side's rows, no less than the longest text.
        tokens_per_batch: the most cells that a side of a batch may have.

    Attributes:
        shapes: the one shape (rows, S, T) of a batch.
        counts: how many rows there are.
    """

    def __init__(
        self,
        lengths: Sequence[np.ndarray],
        planned: Sequence[Callable[[np.ndarray], np.ndarray]],
        packed_length: int,
        tokens_per_batch: int,
    ):
        tokens = np.array([plan(own).sum() for plan, own in zip(planned, lengths, strict=True)])
        sides = np.rint(packed_length * tokens / tokens.max() / MULTIPLE) * MULTIPLE
        sides[tokens.argmax()] = packed_length
        S, T = map(int, np.clip(sides, [own.max() for own in lengths], packed_length))
        # A row's room before sampling makes its texts longer. One that is longer by itself counts
        # as long as the room, and has its side of a row alone.
        room = np.array(
            [
                max(1, np.searchsorted(plan(np.arange(length + 1)), length, side="right") - 1)
                for plan, length in zip(planned, (S, T), strict=True)
            ]
        )
        self._groups, self._rows = pack(np.minimum(np.stack(lengths, axis=1), room), room)
        _, rows = batched(len(self._rows), packed_length, tokens_per_batch)
        self.shapes = ((rows, S, T),)
        self.counts = (len(self._rows),)

    def shuffled(self, generator: np.random.Generator | None) -> list[Ragged]:
        """The pairs in each row, in an order from `generator`; None: as they are."""
        pairs, rows = self._groups.values, self._rows
        if generator is not None:
            pairs = np.concatenate([generator.permutation(group) for group in self._groups])
            rows = rows.take(generator.permutation(len(rows)))
        return [Ragged(pairs[rows.values], rows.starts)]


def pack(lengths: np.ndarray, room: np.ndarray) -> tuple[Ragged, Ragged]:
    """Puts sentence pairs into rows, none of which holds more tokens than it has room for.

    A row is filled with the pair that leaves the least room on the side where it leaves the most,
    then with the next such one, until none fits: a greedy heuristic for bins of two dimensions
    (Panigrahy et al. 2011, "Heuristics for Vector Bin Packing"). It works on the histogram of
    lengths (Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination"): what
    fills one row fills as many as there are pairs of these lengths, so that the work grows with
    the number of different lengths and not with the corpus.

    Args:
        lengths: (pairs, 2), tokens of source and target, from 1 to `room`.
        room: (2,), tokens of source and target that a row may hold.

    Returns:
        The pairs in groups of the same lengths, which may change places within their group; and
        of each row, which places in these groups, counted through, its pairs have.
    """
    # One number for both lengths: sorting rows of a matrix takes ten times as long.
    keys, kinds, counts = np.unique(
        lengths[:, 0] * (room[1] + 1) + lengths[:, 1], return_inverse=True, return_counts=True
    )
    sizes = np.stack(np.divmod(keys, room[1] + 1))
    left, rows, sought = counts.copy(), [], []
    while left.any():
        row = _fill(sizes, left, room)
        needed = np.bincount(row, minlength=len(left))
        times = int(np.min(left[row] // needed[row]))
        left -= times * needed
        rows.append(np.full(times, len(row)))
        sought.append(np.tile(row, times))
    places = np.empty(len(lengths), np.int64)
    places[np.argsort(np.concatenate(sought), kind="stable")] = np.arange(len(lengths))
    groups = Ragged(np.argsort(kinds, kind="stable"), np.cumsum([0, *counts]))
    return groups, Ragged(places, np.cumsum([0, *np.concatenate(rows)]))


def _fill(sizes, left, room):
    """The kinds of pairs in a row: `sizes` (2, kinds) tokens each, and `left` so many of each."""
    left, free, row = left.copy(), room.copy(), []
    while True:
        rest = [(free[side] - sizes[side]) / room[side] for side in (0, 1)]
        fits = (left > 0) & (np.minimum(*rest) >= 0)
        kind = np.where(fits, np.maximum(*rest), np.inf).argmin()
        if not fits[kind]:
            return row
        row.append(kind)
        left[kind] -= 1
        free -= sizes[:, kind]
