"""Command that answers questions from passages."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.common import Precision, answer_lines
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import read_whole_lines
from keras_transformer.cli.tasks import Json, Output, TokensPerBatch

FIELDS = ("question", "context")  # SQuAD's names


def answer(
    folder: Annotated[Path, saved_argument("A saved question answerer")],
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Maximum answers per question.")
    ] = 1,
    min_score: Annotated[
        float | None,
        typer.Option(
            help="Leave out answers with a lower score, which is above 0 if the answer is more "
            "probable than none; for models of SQuAD 2.0.  [default: none are left out]"
        ),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            help="File of questions and passages; may be .gz or .zst.  [default: stdin]",
        ),
    ] = None,
    output_file: Output = None,
    as_json: Json = False,
    tokens_per_batch: TokensPerBatch = 8192,
    stride: Annotated[
        int, typer.Option(min=1, help="Tokens from the start of a window to that of the next.")
    ] = 128,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Fail on a passage too long for the model; else read it in windows."
        ),
    ] = False,
    precision: Precision = None,
) -> None:
    """Find the answer to each question in a passage.

    Each line has a question, a tab and a passage; or it is a JSON object with "question" and
    "context", the passage. Write one line for each line read: the answers, best first, with tabs
    between them; an empty line if there are none. With --json, write the object and its answers
    with the number of their first character, of the one after the last, and a score.

    \b
    Examples:
        keras-transformer answer saved_models/answers < questions.tsv
        keras-transformer answer saved_models/answers --json < questions.jsonl > answers.jsonl
    """
    from keras_transformer.tasks.question_answerer import QuestionAnswerer

    answerer, numbers = QuestionAnswerer.load(folder, precision), itertools.count(1)
    options = dict(min_score=min_score, stride=stride, strict=strict)
    options |= dict(tokens_per_batch=tokens_per_batch)

    def answers(lines):
        records = [_record(line, next(numbers)) for line in lines]
        pairs = [tuple(record[name] for name in FIELDS) for record in records]
        for record, found in zip(records, answerer.answer(pairs, top_k, **options), strict=True):
            record = record | {"answers": [dataclasses.asdict(x) for x in found]}
            words = (" ".join(x.text.split()) for x in found)
            yield json.dumps(record, ensure_ascii=False) if as_json else "\t".join(words)

    answer_lines(input_file, output_file, answers, read_whole_lines(input_file))


def _record(line, number):
    """Return a line as an object with a question and a passage."""
    question, tab, passage = line.partition("\t")
    record = dict(zip(FIELDS, (question, passage), strict=True)) if tab else None
    if line.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):  # a question may begin with a brace
            record = json.loads(line)
    is_whole = isinstance(record, dict) and all(isinstance(record.get(x), str) for x in FIELDS)
    if not is_whole:
        raise ValueError(
            f"line {number} must be a question, a tab and a passage, or a JSON object with the "
            f"strings {FIELDS}, got {line!r:.60}"
        )
    return record
