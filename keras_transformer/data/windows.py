"""Rows for language models: windows of one long text, or several documents packed per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from keras_transformer.config import require_whole
from keras_transformer.data.packing import pack

NO_LABEL = -1  # label of positions that do not count in the loss


class Windows:
    """Windows of a text at random positions; the label of each token is the next token.

    A batch is `({"token_ids": (rows, T)}, labels (rows, T))`, int32. It depends on the seed and
    the step alone, so a resumed run sees the same batches as an uninterrupted one.

    Args:
        ids: Token ids of the text.
        length: T, at most `len(ids) - 1`.
        rows: Windows per batch.
        seed: Seed of the random positions.

    Raises:
        ValueError: If an argument is out of range, or the text is too short.
    """

    def __init__(self, ids: Sequence[int], length: int, rows: int, seed: int = 0):
        for name, value in dict(length=length, rows=rows).items():
            require_whole(name, value, 1)
        self.ids = np.asarray(ids, "int32")
        self.length, self.rows, self.seed = length, rows, seed
        if len(self.ids) <= length:
            raise ValueError(
                f"ids must hold more than length={length}, for a window and its labels, got "
                f"{len(self.ids)}"
            )

    def batch(self, step: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the batch of a step; steps count from 0."""
        generator = np.random.default_rng([self.seed, step])
        starts = generator.integers(len(self.ids) - self.length, size=self.rows)
        return _rows(self.ids, starts, self.length)

    def batches(self, first_step: int = 0) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
        """Yield batches without end, starting at `first_step`."""
        while True:
            yield self.batch(first_step)
            first_step += 1

    def consecutive(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return consecutive windows over the whole text; an incomplete last one is dropped."""
        starts = np.arange(0, len(self.ids) - self.length, self.length)
        return _rows(self.ids, starts, self.length)


def _rows(ids, starts, length):
    places = starts[:, None] + np.arange(length)
    return {"token_ids": ids[places]}, ids[places + 1]


def packed(
    documents: Sequence[Sequence[int]], length: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Pack several documents into each row; segment numbers keep them apart in attention.

    Args:
        documents: Token ids of each document, two or more; truncated to `length` + 1 ids.
        length: Row length T.

    Returns:
        The inputs `token_ids` (rows, T) and `segments` (rows, T), the number of each token's
        document in its row, from 1, and 0 for padding; and the labels (rows, T), `NO_LABEL` for
        padding.

    Raises:
        ValueError: If there are no documents, or one has fewer than two tokens.
    """
    require_whole("length", length, 1)
    if not documents or min(map(len, documents)) < 2:
        raise ValueError("documents must be one or more, with at least two tokens each")
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
