"""`Visits`: the number of times that each pair occurs in an epoch, to mix corpora by weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keras_transformer.config import require


class Visits:
    """The pairs of each epoch, if some occur several times or only in some epochs.

    A pair with 2.3 visits occurs two or three times. All epochs have pairs of the same lengths, so
    that the shapes of batches can be computed once: among the pairs with the same lengths and
    visits, each epoch draws those that occur once more. A pair that shares its lengths and visits
    with no other occurs equally often in each epoch; with less than one visit, that may be never.

    Args:
        visits: Mean number of times that each pair occurs in an epoch: (N,), at least 0.
        lengths: Tokens of each source (N,), and of each target (N,).

    Attributes:
        plain: Indices of the pairs of an epoch without shuffling, each as often as it occurs.

    Raises:
        ValueError: If a number is negative or not finite, or no pair occurs.
    """

    def __init__(self, visits: np.ndarray, lengths: Sequence[np.ndarray]):
        are_counts = (
            visits.dtype.kind in "iuf" and np.isfinite(visits).all() and (visits >= 0).all()
        )
        require(are_counts, "visits", visits, "finite numbers of at least 0")
        keys = np.stack([visits, *lengths])
        self._kinds = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
        # Rounding the running sum, not each number, spreads rounding errors over all lengths.
        order = np.argsort(self._kinds, kind="stable")
        sums = np.floor(np.cumsum(visits[order]) + 0.5).astype(np.int64)
        self._places = np.repeat(np.arange(len(order)), np.diff(sums, prepend=0))
        require(len(self._places), "visits", visits, "large enough that a pair occurs")
        self.plain = order[self._places]

    def shuffled(self, generator: np.random.Generator) -> np.ndarray:
        """Return the indices of the pairs of an epoch; their lengths are the same as in `plain`."""
        order = np.lexsort((generator.random(len(self._kinds)), self._kinds))
        return order[self._places]
