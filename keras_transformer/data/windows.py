"""Rows for language models: windows of one long text, or several documents packed in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from keras_transformer.config import require_whole
from keras_transformer.data.packing import pack

NO_LABEL = -1  # of places that do not count


class Windows:
    """Windows of a text at random places, each token's label the one that follows it.

    A batch is `({"token_ids": (rows, T)}, labels (rows, T))`, int32: a function of its step, so
    that a run that is continued sees what it would have seen.

    Args:
        ids: of the text.
        length: T, at most one less than there are ids.
        rows: windows a batch.
        seed: of the places.

    Raises:
        ValueError: for an argument out of range, or a text that is too short.
    """

    def __init__(self, ids: Sequence[int], length: int, rows: int, seed: int = 0):
        for name, value in dict(length=length, rows=rows).items():
            require_whole(name, value, 1)
        self.ids = np.asarray(ids, "int32")
        self.length, self.rows, self.seed = length, rows, seed
        if len(self.ids) <= length:
            raise ValueError(
                f"ids must be more than length={length}, for a window and its labels, got "
                f"{len(self.ids)}"
            )

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The batch of a step, which are counted from 0."""
        generator = np.random.default_rng([self.seed, step])
        starts = generator.integers(len(self.ids) - self.length, size=self.rows)
        return _rows(self.ids, starts, self.length)

    def batches(self, first_step: int = 0) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Batches without end, from a step on."""
        while True:
            yield self.batch(first_step)
            first_step += 1

    def consecutive(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The whole text once, window by window; what is left at the end is left out."""
        starts = np.arange(0, len(self.ids) - self.length, self.length)
        return _rows(self.ids, starts, self.length)


def _rows(ids, starts, length):
    places = starts[:, None] + np.arange(length)
    return {"token_ids": ids[places]}, ids[places + 1]


def packed(
    documents: Sequence[Sequence[int]], length: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Documents in rows of one length, several in each, which see nothing of one another.

    Args:
        documents: ids of each, of at least two tokens; longer ones than `length` + 1 are cut.
        length: T.

    Returns:
        `token_ids` and `segments`, the number of each token's document in its row and 0 for
        padding, (rows, T); and labels (rows, T), `NO_LABEL` for padding.

    Raises:
        ValueError: if a document has fewer than two tokens, or there are none.
    """
    require_whole("length", length, 1)
    if not documents or min(map(len, documents)) < 2:
        raise ValueError("documents must have at least two tokens each, and be at least one")
    documents = [np.asarray(ids[: length + 1], "int32") for ids in documents]
    sizes = np.array([len(ids) - 1 for ids in documents])
    groups, places = pack(np.stack([sizes, sizes], axis=1), np.array([length, length]))
    token_ids, segments = (np.zeros((len(places), length), "int32") for _ in range(2))
    labels = np.full((len(places), length), NO_LABEL, "int32")
    for row, chosen in enumerate(places):
        start = 0
        for number, i in enumerate(groups.values[chosen], 1):
            part = slice(start, start + sizes[i])
            token_ids[row, part], labels[row, part] = documents[i][:-1], documents[i][1:]
            segments[row, part] = number
            start += sizes[i]
    return {"token_ids": token_ids, "segments": segments}, labels
