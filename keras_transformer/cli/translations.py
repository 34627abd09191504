"""Translation of lines in chunks, with prefixes and alignments."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_transformer.cli.reading import read_lines
from keras_transformer.data.lines import one_line

Align = Callable[[list[str], list[str]], list[str]]


def with_prefixes(
    lines: Iterator[str], prefix: str | None, prefix_file: Path | None, name: str
) -> Iterator[tuple[str, str | None]]:
    """Yield each line with the prefix of its translation; None: it has no prefix.

    Args:
        lines: Source texts.
        prefix: Prefix of all translations; None: no prefix, or `prefix_file`.
        prefix_file: File with a prefix for each line; None: `prefix` for all.
        name: Name of the lines' file, for the error message.

    Raises:
        ValueError: If the file has more or fewer lines, once all are read.
    """
    if prefix_file is None:
        return zip(lines, itertools.repeat(prefix), strict=False)
    from keras_transformer.data.text_files import in_parallel

    return in_parallel((lines, read_lines(prefix_file)), (name, prefix_file))


def translations(
    chunk: Sequence[tuple[int, tuple[str, str | None]]],
    translate: Callable[..., list[Any]],
    *,
    seed: int | None = None,
    align: Align | None = None,
) -> Iterator[str]:
    """Yield the lines to write for a chunk of sources.

    Args:
        chunk: Index of each source among all, from 0, and the source with its prefix.
        translate: Function from sources to their translations: a text, or several hypotheses, for
            each. It gets `prefixes` if there are any, and `seed` if it is not None.
        seed: Seed; a chunk is drawn with this number plus the index of its first source. None: the
            translations are not drawn.
        align: Function from sources and translations to alignments, which are also written; None:
            no alignments.
    """
    indices, pairs = zip(*chunk, strict=True)
    sources, prefixes = map(list, zip(*pairs, strict=True))
    options: dict[str, Any] = {} if prefixes[0] is None else {"prefixes": prefixes}
    options |= {} if seed is None else {"seed": seed + indices[0]}
    results = translate(sources, **options)
    hypotheses = [[x] if isinstance(x, str) else x for x in results]
    rows = [
        (i, source, one_line(x if isinstance(x, str) else x.text), getattr(x, "score", None))
        for i, source, row in zip(indices, sources, hypotheses, strict=True)
        for x in row
    ]
    alignments = align([x[1] for x in rows], [x[2] for x in rows]) if align else None
    for n, (i, _, text, score) in enumerate(rows):
        parts = [text] if score is None else [str(i), text, f"{score:.4f}"]
        yield " ||| ".join(parts + ([alignments[n]] if alignments else []))


def pharaoh(translator: Any) -> Align:
    """Return a function from sources and translations to word alignments such as "0-0 1-2".

    Words are separated by white space; the index of the source word comes first. Words of a text
    without tokens, and words that were cut, have no alignment.

    Args:
        translator: The translator; alignments come from its attention.
    """
    from keras_transformer.analysis.alignment import align
    from keras_transformer.text.word_spans import spaced_words

    def links(sources, targets):
        pairs = align(translator, sources, targets, split=spaced_words, strict=False)
        return [" ".join(f"{source}-{target}" for source, target in row) for row in pairs]

    return links
