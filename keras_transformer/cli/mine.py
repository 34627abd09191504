"""Command that finds translations in two files of sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.common import CHUNK, Precision, opened, say
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import read_lines
from keras_transformer.cli.tasks import TokensPerBatch


def mine(
    folder: Annotated[Path, saved_argument("A saved text encoder of both languages")],
    source: Annotated[
        Path,
        typer.Option(
            help="File of sentences: one per line, TSV, JSON lines or Parquet; may be .gz or .zst."
        ),
    ],
    target: Annotated[Path, typer.Option(help="The same in the other language.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="TSV file to write.")],
    min_margin: Annotated[
        float, typer.Option(help="Leave out pairs with a lower margin; pairs are good from 1 on.")
    ] = 1.0,
    neighbours: Annotated[
        int, typer.Option(min=1, help="Neighbours of a sentence that its margin is a mean of.")
    ] = 4,
    tokens_per_batch: TokensPerBatch = 8192,
    precision: Precision = None,
) -> None:
    """Find translations in two files of sentences in different languages, in any order.

    Write margin, source and target of each pair, with tabs between them, best first. The margin is
    the cosine of the sentences' vectors, divided by the mean cosine of each with its neighbours in
    the other file (Artetxe and Schwenk 2019). A sentence is in one pair at most; repeated sentences
    count once.

    \b
    Example:
        keras-transformer mine saved_models/embedder --source news.en --target news.de -o pairs.tsv
    """
    import numpy as np

    from keras_transformer.tasks.mining import mined
    from keras_transformer.tasks.text_embedder import TextEmbedder

    for option, path in (("--source", source), ("--target", target)):
        if output.exists() and path.exists() and output.samefile(path):
            raise ValueError(f"--output must be another file than {option}, got {output}")
    embedder = TextEmbedder.load(folder, precision)
    sources, targets = (_sentences(path) for path in (source, target))

    def vectors(sentences):
        chunks = (sentences[i : i + CHUNK] for i in range(0, len(sentences), CHUNK))
        return np.concatenate(
            [embedder.embed(x, tokens_per_batch=tokens_per_batch) for x in chunks]
        )

    scores, xs, ys = mined(vectors(sources), vectors(targets), neighbours)
    number = int((scores >= min_margin).sum())  # the best come first
    with opened(output) as file:
        for score, x, y in zip(scores[:number], xs, ys, strict=False):
            file.write(f"{score:.4f}\t{sources[x]}\t{targets[y]}\n")
    say(f"{number:,} pairs of {len(sources):,} and {len(targets):,} sentences")


def _sentences(path):
    """Return the lines of a file without repetitions and empty ones, with single spaces."""
    lines = dict.fromkeys(" ".join(line.split()) for line in read_lines(path))
    sentences = [line for line in lines if line]
    if not sentences:
        raise ValueError(f"{path} must have at least one line of text, got none")
    return sentences
