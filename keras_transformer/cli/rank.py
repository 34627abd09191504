"""Command that ranks lines of text by how well they fit a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, check_output, opened
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import TextField, read_lines
from keras_transformer.cli.tasks import Input, Json, Output, Strict, TokensPerBatch


def rank(
    folder: Annotated[Path, saved_argument("A saved text scorer (cross-encoder)")],
    query: Annotated[str, typer.Argument(help="What the lines are ranked for.")],
    top_k: Annotated[
        int | None, typer.Option("--top-k", "-k", min=1, help="Number of lines.  [default: all]")
    ] = None,
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Output = None,
    as_json: Json = False,
    tokens_per_batch: TokensPerBatch = 8192,
    strict: Strict = False,
    precision: Precision = None,
) -> None:
    """Rank lines of text by how well they fit a query, best first.

    Write the score, a tab and the line. With --json, write the number of the line from 0 too.
    The command classify scores pairs: lines of two texts with a tab between them.

    \b
    Example:
        keras-transformer rank saved_models/ms-marco-MiniLM-L6-v2 "How do I pay?" < answers.txt
    """
    from keras_transformer.tasks.text_scorer import TextScorer

    scorer = TextScorer.load(folder, precision)
    options: dict[str, Any] = dict(tokens_per_batch=tokens_per_batch, strict=strict)
    check_output(input_file, output_file)
    lines = list(read_lines(input_file, text_field))
    matches = scorer.rank(query, lines, top_k, **options)
    with opened(output_file) as out:
        for match in matches:
            record = {"index": match.index, "score": match.score, "text": lines[match.index]}
            line = f"{match.score:.6g}\t{lines[match.index]}"
            out.write((json.dumps(record, ensure_ascii=False) if as_json else line) + "\n")
