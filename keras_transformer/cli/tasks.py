"""Commands of tasks on lines of text, such as `classify`, as declared in `saved.kinds`."""

import contextlib
import dataclasses
import inspect
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, answer_lines, searching
from keras_transformer.cli.folders import saved_argument
from keras_transformer.cli.reading import TEXT_FILE, TextField, read_lines, read_whole_lines
from keras_transformer.data.formats import TSV, suffix_of
from keras_transformer.saved.kinds import KINDS, Kind
from keras_transformer.saved.uses import Use
from keras_transformer.search import Search

Input = Annotated[
    Path | None,
    typer.Option("--input", "-i", help=f"{TEXT_FILE}.  [default: stdin]"),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write.  [default: stdout]")
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, with all that is found.")]
TokensPerBatch = Annotated[
    int, typer.Option(min=1, help="Maximum tokens per batch, padding included.")
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail on a text too long for the model; else cut the text."),
]
FIELDS = ("question", "context")  # SQuAD's names


def command_of(kind: Kind, use: Use) -> Callable:
    """Return the command that runs models of a kind, as its `use` declares."""
    name, read = str(kind.command), _READERS[use.items]

    def command(
        folder: Annotated[Path, saved_argument(f"A saved {kind.what}")],
        input_file: Input = None,
        text_field: TextField = None,
        output_file: Output = None,
        as_json: Json = False,
        tokens_per_batch: TokensPerBatch = use.tokens_per_batch,
        strict: Strict = False,
        precision: Precision = None,
        **options: Any,
    ) -> None:
        import keras_transformer

        tool = getattr(keras_transformer, kind.loader).load(folder, precision)
        find = getattr(tool, name)
        options |= dict(tokens_per_batch=tokens_per_batch, strict=strict)
        number = itertools.count(1)

        def answers(lines):
            items, records = zip(*(read(line, next(number)) for line in lines), strict=True)
            for record, result in zip(records, find(items, **options), strict=True):
                if as_json:
                    shown = result if isinstance(result, list) else tool.in_words(result)
                    if isinstance(result, list):
                        shown = [dataclasses.asdict(x) for x in result]
                    record = record | {use.record or use.found: shown}
                    yield json.dumps(record, ensure_ascii=False)
                else:
                    yield tool.in_words(result)

        lines = _lines(use.items, input_file, text_field)
        answer_lines(input_file, output_file, answers, lines)

    command.__name__, command.__doc__ = name, use.help
    signature = inspect.signature(command)
    parameters = [
        x
        for x in signature.parameters.values()
        if use.items != "questions" or x.name != "text_field"
    ]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    names = [field.name for field in dataclasses.fields(use.options)]
    return searching(Search, use.search)(searching(use.options, names)(command))


def _lines(items: str, path: Path | None, text_field: str | None) -> Iterator[str]:
    """Return the texts of a file; for questions and for a table of pairs, its whole lines."""
    is_table = path is not None and suffix_of(path) in TSV and text_field is None
    if items == "questions" or (items == "texts or pairs" and is_table):  # its columns are a pair
        return read_whole_lines(path)
    return read_lines(path, text_field)


def _text(line, number):
    return line, {"text": line}


def _text_or_pair(line, number):
    parts = line.split("\t")
    return parts[0] if len(parts) == 1 else tuple(parts), {"text": line}


def _question(line, number):
    """Return a line as a question with its passage, and as an object with both."""
    question, tab, passage = line.partition("\t")
    record = dict(zip(FIELDS, (question, passage), strict=True)) if tab else None
    if line.lstrip().startswith("{"):
        with contextlib.suppress(ValueError):  # a question may begin with a brace
            record = json.loads(line)
    if not isinstance(record, dict) or not all(isinstance(record.get(x), str) for x in FIELDS):
        raise ValueError(
            f"line {number} must be a question, a tab and a passage, or a JSON object with the "
            f"strings {FIELDS}, got {line!r:.60}"
        )
    return tuple(record[x] for x in FIELDS), record


_READERS = {"texts": _text, "texts or pairs": _text_or_pair, "questions": _question}
COMMANDS = [command_of(kind, kind.use) for kind in KINDS if kind.use]
