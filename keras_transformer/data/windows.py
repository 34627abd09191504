"""Rows for language models: windows of texts (`Windows`), or packed documents (`PackedRows`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from keras_transformer.config import require_whole
from keras_transformer.data.packing import pack
from keras_transformer.data.ragged import Ragged

NO_LABEL = -1  # label of positions that are ignored by the loss

Batch = tuple[dict[str, np.ndarray], np.ndarray]


class Windows:
    """Windows of texts at random positions; the label of each token is the next token.

    A batch is `({"token_ids": (rows, T)}, labels (rows, T))`, int32. It depends only on the seed
    and the step, so a resumed run gets the same batches as an uninterrupted one. If there are
    several documents, the inputs also have `segments` (rows, T), the number of each token's
    document in its window, from 1, so that attention stays within a document; the last token of a
    document has the label `NO_LABEL`.

    Args:
        ids: Token ids of the text, or of all documents, concatenated. An int32 array is not
            copied, so it can be a file that is mapped into memory.
        length: Window length T, at most `len(ids) - 1`.
        rows: Windows per batch.
        seed: Seed of the random positions.
        starts: Index of each document's first id in `ids`, ascending; None: there is only one
            document.

    Raises:
        ValueError: If an argument is out of range, or the text is too short.
    """

    def __init__(
        self,
        ids: Sequence[int] | np.ndarray,
        length: int,
        rows: int,
        seed: int = 0,
        starts: Sequence[int] | np.ndarray | None = None,
    ):
        for name, value in dict(length=length, rows=rows).items():
            require_whole(name, value, 1)
        self.ids = np.asarray(ids, "int32")
        self.length, self.rows, self.seed = length, rows, seed
        self.starts = None if starts is None or len(starts) < 2 else np.asarray(starts)
        if len(self.ids) <= length:
            raise ValueError(
                f"ids must hold more than length={length}, for a window and its labels, got "
                f"{len(self.ids)}"
            )

    def batch(self, step: int) -> Batch:
        """Return the batch of a step; steps count from 0."""
        generator = np.random.default_rng([self.seed, step])
        return self._rows(generator.integers(len(self.ids) - self.length, size=self.rows))

    def batches(self, first_step: int = 0) -> Iterator[Batch]:
        """Yield batches without end, starting at `first_step`."""
        while True:
            yield self.batch(first_step)
            first_step += 1

    def consecutive(self, most: int | None = None) -> Batch:
        """Return consecutive windows over the whole text; an incomplete last one is dropped.

        Args:
            most: Maximum number of windows; if there are more, as many evenly spaced ones are
                returned. None: all.
        """
        starts = np.arange(0, len(self.ids) - self.length, self.length)
        if most is not None and len(starts) > most:
            starts = starts[np.linspace(0, len(starts) - 1, most).astype(int)]
        return self._rows(starts)

    def _rows(self, starts):
        """Return inputs and labels of the windows that begin at these positions."""
        places = starts[:, None] + np.arange(self.length + 1)
        ids = self.ids[places]
        inputs, labels = {"token_ids": ids[:, :-1]}, ids[:, 1:]
        if self.starts is not None:
            owners = np.searchsorted(self.starts, places, side="right")
            inputs["segments"] = (owners - owners[:, :1] + 1)[:, :-1].astype("int32")
            labels = np.where(owners[:, 1:] == owners[:, :-1], labels, NO_LABEL)
        return inputs, labels


class PackedRows:
    """Whole documents, several per row; segment numbers keep them apart in attention.

    The combinations of lengths that share a row are computed once. Each pass over the data shuffles
    the documents of equal lengths, and the rows. A batch depends only on the seed and the step; it
    may contain rows of successive passes.

    Args:
        documents: Token ids of each document, from 2 to `length` + 1 ids; they can be a file that
            is mapped into memory.
        length: Row length T.
        rows: Rows per batch.
        seed: Seed of the order.
        counted: For each document, whether each of its ids counts in the loss as a label; None: all
            count.

    Raises:
        ValueError: If an argument is out of range, there are no documents, or one is too short or
            too long.
    """

    def __init__(
        self,
        documents: Ragged,
        length: int,
        rows: int,
        seed: int = 0,
        counted: Ragged | None = None,
    ):
        for name, value in dict(length=length, rows=rows).items():
            require_whole(name, value, 1)
        lengths = documents.lengths
        if not len(lengths) or lengths.min() < 2 or lengths.max() > length + 1:
            shown = f"{lengths.min()} to {lengths.max()}" if len(lengths) else "none"
            raise ValueError(
                f"documents must be one or more, with at least two tokens each and at most "
                f"length + 1 = {length + 1}, got {shown}"
            )
        self.length, self.rows, self.seed = length, rows, seed
        self._documents, self._counted = documents, counted
        sizes = np.stack([lengths - 1, lengths - 1], axis=1)
        self._groups, self._places = pack(sizes, np.array([length, length]))
        self._planned: tuple[int, np.ndarray, Ragged] | None = None

    def __len__(self) -> int:
        """Return the number of batches of a pass over the data, rounded up."""
        return -(-len(self._places) // self.rows)

    def batch(self, step: int) -> Batch:
        """Return the batch of a step; steps count from 0.

        The inputs are `token_ids` (rows, T) and `segments` (rows, T): the number of each token's
        document in its row, from 1; 0 for padding. Labels (rows, T) are `NO_LABEL` for padding
        and for ids that do not count.
        """
        numbers = range(step * self.rows, (step + 1) * self.rows)
        return self._filled([self._row(*divmod(x, len(self._places))) for x in numbers])

    def batches(self, first_step: int = 0) -> Iterator[Batch]:
        """Yield batches without end, starting at `first_step`."""
        while True:
            yield self.batch(first_step)
            first_step += 1

    def all(self) -> Batch:
        """Return all rows, unshuffled, as one batch."""
        return self._filled([self._groups.values[chosen] for chosen in self._places])

    def _row(self, epoch, number):
        """Return the indices of the documents in a row of a pass."""
        planned = self._planned  # read once: threads may request two passes at a time
        if planned is None or planned[0] != epoch:
            generator = np.random.default_rng([self.seed, epoch])
            order = np.concatenate([generator.permutation(group) for group in self._groups])
            places = self._places.take(generator.permutation(len(self._places)))
            planned = self._planned = epoch, order, places
        _, order, places = planned
        return order[places[number]]

    def _filled(self, rows):
        """Return inputs and labels of rows, each given as indices of documents."""
        token_ids, segments = (np.zeros((len(rows), self.length), "int32") for _ in range(2))
        labels = np.full((len(rows), self.length), NO_LABEL, "int32")
        for row, chosen in enumerate(rows):
            start = 0
            for number, i in enumerate(chosen, 1):
                ids = np.asarray(self._documents[i], "int32")
                part = slice(start, start + len(ids) - 1)
                token_ids[row, part], labels[row, part] = ids[:-1], ids[1:]
                if self._counted is not None:
                    labels[row, part][self._counted[i][1:] == 0] = NO_LABEL
                segments[row, part] = number
                start += len(ids) - 1
        return {"token_ids": token_ids, "segments": segments}, labels


def packed(documents: Sequence[Sequence[int]], length: int) -> Batch:
    """Pack several documents into each row; segment numbers keep them apart in attention.

    Args:
        documents: Token ids of each document, at least two ids; longer documents are truncated to
            `length` + 1 ids.
        length: Row length T.

    Returns:
        The inputs and labels of all rows, see `PackedRows.batch`.

    Raises:
        ValueError: If `length` is below 1, there are no documents, or one has fewer than two
            tokens.
    """
    require_whole("length", length, 1)
    cut = Ragged.pack([ids[: length + 1] for ids in documents])
    return PackedRows(cut, length, rows=1).all()
