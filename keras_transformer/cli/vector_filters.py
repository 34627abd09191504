"""The filters of `clean` that compare the vectors of both sides of a pair."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from keras_transformer.cli.common import CHUNK

Row = tuple[str, str, str | None]  # source, target, reason why it is dropped; None: it is kept
BLOCK = 8 * CHUNK  # pairs among which the neighbours of a sentence are searched


def vector_filter(
    folder: Path | None, min_similarity: float | None, min_margin: float | None
) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """Return the function that gives rows with dissimilar sides a reason to be dropped.

    The reasons are "similarity", if the cosine is below `min_similarity`, and "margin", if the
    margin is below `min_margin`. Without an embedder, rows are returned as they are.

    Raises:
        ValueError: If there is an embedder without a limit, or a limit without an embedder; or if
            the folder has no text encoder.
    """
    has_limit = min_similarity is not None or min_margin is not None
    if (folder is not None) != has_limit:
        raise ValueError("--embedder goes together with --min-similarity, --min-margin or both")
    if folder is None:
        return iter
    import numpy as np

    from keras_transformer.tasks.mining import margins
    from keras_transformer.tasks.similarity import cosines
    from keras_transformer.tasks.text_embedder import TextEmbedder

    embedder = TextEmbedder.load(folder)

    def reasons(pairs: Sequence[tuple[str, str]]) -> Iterator[str | None]:
        sides = [*zip(*pairs, strict=True)]
        # A sentence that occurs in several pairs counts once among the neighbours.
        texts = [list(dict.fromkeys(side)) for side in sides]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # long texts are compared by their beginnings
            sources, targets = map(embedder.embed, texts)
        places = [{text: i for i, text in enumerate(part)} for part in texts]
        x, y = ([i[text] for text in side] for i, side in zip(places, sides, strict=True))
        dropped = np.full(len(pairs), None, dtype=object)
        if min_margin is not None:
            dropped[margins(sources, targets, x, y) < min_margin] = "margin"
        if min_similarity is not None:
            dropped[cosines(sources[x], targets[y]) < min_similarity] = "similarity"
        return iter(dropped)

    def filtered(rows: Iterable[Row]) -> Iterator[Row]:
        for block in _blocks(rows, CHUNK if min_margin is None else BLOCK):
            pairs = [(source, target) for source, target, reason in block if reason is None]
            values = reasons(pairs) if pairs else iter(())
            for source, target, reason in block:
                yield source, target, next(values) if reason is None else reason

    return filtered


def _blocks(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yield lists of rows; a last one of less than half the size joins the one before it."""
    rows = iter(rows)
    block = list(itertools.islice(rows, size))
    while following := list(itertools.islice(rows, size)):
        if len(following) < size / 2:
            block += following
        else:
            yield block
            block = following
    yield block
