"""Command that finds the phrase-structure trees of sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, TokensPerBatch, answer_lines, searching
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import TextField, read_lines
from keras_transformer.cli.tasks import Input, Output, Strict
from keras_transformer.search import Search

OPTIONS = ("beam_size", "length_penalty")


@searching(Search, OPTIONS)
def parse(
    folder: Annotated[Path, saved_argument("A saved parser")],
    input_file: Input = None,
    text_field: TextField = None,
    output_file: Output = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON lines, with the sentences.")
    ] = False,
    tokens_per_batch: TokensPerBatch = 4096,
    strict: Strict = False,
    precision: Precision = None,
    **search: Any,
) -> None:
    """Find the phrase-structure tree of each sentence, one per line.

    Words and punctuation must be separated by spaces, as in a treebank. Write one line for each
    line read: the tree with brackets; an empty line if there are no words.

    \b
    Example:
        echo "The cat sat on the mat ." | keras-transformer parse saved_models/parser
    """
    from keras_transformer.tasks.parser import Parser

    parser = Parser.load(folder, precision)
    options = dict(tokens_per_batch=tokens_per_batch, strict=strict, **search)

    def answers(lines):
        for line, tree in zip(lines, parser.parse(lines, **options), strict=True):
            shown = str(tree or "")
            yield (
                json.dumps({"text": line, "tree": shown}, ensure_ascii=False) if as_json else shown
            )

    answer_lines(input_file, output_file, answers, read_lines(input_file, text_field))
