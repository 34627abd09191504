"""Packing: several sentence pairs per row, in rows of one length with little padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from keras_transformer.data.buckets import MULTIPLE, batched
from keras_transformer.data.ragged import Ragged


class Packing:
    """Pairs packed into rows of one shape, several per row.

    The side with more tokens in total has rows of `packed_length`. The rows of the other side are
    proportionally shorter, but hold at least its longest text. The combinations of lengths that
    share a row are computed once, so every epoch has the same number of rows; each epoch shuffles
    the pairs of equal lengths, and the rows.

    Args:
        lengths: Number of tokens of each source (N,), and of each target (N,).
        planned: For each side, a function from numbers of tokens to numbers of cells to reserve
            for them, which may be more because of subword sampling.
        packed_length: Row length of the longer side, at least that of the longest text.
        tokens_per_batch: Maximum cells per side of a batch, padding included.

    Attributes:
        shapes: The only shape (rows, S, T) of a batch, in a tuple.
        counts: The number of rows, in a tuple.
    """

    def __init__(
        self,
        lengths: Sequence[np.ndarray],
        planned: Sequence[Callable[[np.ndarray], np.ndarray]],
        packed_length: int,
        tokens_per_batch: int,
    ):
        tokens = np.array([plan(x).sum() for plan, x in zip(planned, lengths, strict=True)])
        sides = np.rint(packed_length * tokens / tokens.max() / MULTIPLE) * MULTIPLE
        sides[tokens.argmax()] = packed_length
        S, T = map(int, np.clip(sides, [x.max() for x in lengths], packed_length))
        # The room of a row in tokens before sampling, which makes texts longer. A text that exceeds
        # the room counts as filling it, so it has a row of its own.
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
        """Return a list of one `Ragged`: the indices of the pairs of each row.

        Args:
            generator: Shuffles pairs of equal lengths, and the rows; None keeps their order.
        """
        pairs, rows = self._groups.values, self._rows
        if generator is not None:
            pairs = np.concatenate([generator.permutation(group) for group in self._groups])
            rows = rows.take(generator.permutation(len(rows)))
        return [Ragged(pairs[rows.values], rows.starts)]


def pack(lengths: np.ndarray, room: np.ndarray) -> tuple[Ragged, Ragged]:
    """Pack sentence pairs into rows with limited room on both sides.

    This is a greedy heuristic for two-dimensional bins (Panigrahy et al. 2011, "Heuristics for
    Vector Bin Packing"): a row is filled pair by pair until no pair fits, each time with the pair
    that leaves the smallest free fraction (the larger fraction of the two sides). It works on the
    histogram of lengths (Krell et al. 2021, "Efficient Sequence Packing without
    Cross-contamination"): a combination of lengths is used for as many rows as there are pairs of
    these lengths. So the time of the search depends on the number of distinct lengths, and hardly
    on the number of pairs.

    Args:
        lengths: Numbers of tokens of source and target of each pair (N, 2), from 1 to `room`.
        room: Maximum tokens of source and target in a row (2,).

    Returns:
        The indices of the pairs in groups of equal lengths, within which pairs are interchangeable;
        and, for each row, the indices of its pairs in the concatenated groups.
    """
    # Both lengths in one number: `unique` over the rows of a matrix takes ten times as long.
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
    """Return the kinds (combinations of lengths) of the pairs for one row.

    Args:
        sizes: Tokens of source and target of each kind (2, kinds).
        left: Number of pairs left of each kind (kinds,).
        room: See `pack`.
    """
    left, free = left.copy(), room.copy()
    row: list[np.signedinteger] = []
    while True:
        rest = [(free[side] - sizes[side]) / room[side] for side in (0, 1)]
        has_room = (left > 0) & (np.minimum(*rest) >= 0)
        kind = np.where(has_room, np.maximum(*rest), np.inf).argmin()
        if not has_room[kind]:
            return row
        row.append(kind)
        left[kind] -= 1
        free -= sizes[:, kind]
