"""Shared parts of the commands: errors, common options, output and progress.

The modules of the command line import no framework, and no module of the library that imports one.
Each command imports what it needs in its body, so that `--help` and completion take 0.1 s, not 6 s.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperCommand, TyperGroup

from keras_transformer.cli.folders import make_loadable, saved, saved_argument
from keras_transformer.config import require
from keras_transformer.search import SearchOptions, spelled_out
from keras_transformer.system.failures import BAD_INPUT, in_one_line, memory_errors
from keras_transformer.system.files import replacing
from keras_transformer.system.registration import after_import

T = TypeVar("T")
CHUNK = 2048  # lines that are sorted by length and processed together; 1 for typed input


class Commands(TyperGroup):
    """A command group that reports user errors in one line; with `--debug`, as a traceback."""

    def invoke(self, context: Any) -> Any:
        """Run a command; exit with status 2 on a user error."""
        try:
            with memory_errors():
                return super().invoke(context)
        except BrokenPipeError:  # not an error: a program such as `head` has closed our stdout
            raise
        except BAD_INPUT as error:
            if context.params["debug"]:
                raise
            say(in_one_line(error))
            raise typer.Exit(2) from error


class Command(TyperCommand):
    """A command whose compiled JAX programs are cached for later processes.

    Hugging Face checkpoints that are given in place of saved folders are imported first, see
    `folders`.
    """

    def invoke(self, context: Any) -> Any:
        """Import the checkpoints among the arguments, and run the command."""
        after_import("keras_transformer.backend", lambda backend: backend.keep_compilations())
        make_loadable(context.params)
        return super().invoke(context)


Folder = Annotated[Path, saved_argument("A saved translator")]
SourceLanguage = Annotated[
    str | None,
    typer.Option(
        help="Source language of a multilingual model, as the model names it, such as eng_Latn "
        "(NLLB-200).  [default: as saved]"
    ),
]
TargetLanguage = Annotated[
    str | None,
    typer.Option(
        help="Target language of a multilingual model, such as deu_Latn (NLLB-200).  "
        "[default: as saved]"
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Type of the weights: float32, bfloat16, float16, int8, q8 or q4.  [default: as saved]"
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Engine that computes: keras, on the backend; or, with the same translations, "
        "ctranslate2, litert, inductor (PyTorch's compiler), or auto, which chooses and says why."
    ),
]
EnsembleOf = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        **saved(
            "A further translator with the same tokenizer, to average log-probabilities with; may "
            "be repeated"
        ),
    ),
]
ContextSentences = Annotated[
    int,
    typer.Option(
        min=0,
        help="Number of previous sentences to translate each sentence with, for a model that was "
        "trained so; an empty line ends a document.",
    ),
]
Tokenize = Annotated[
    str | None,
    typer.Option(
        help="Tokenizer of BLEU, by sacreBLEU's name, such as 13a, zh, ja-mecab, char or flores200."
        "  [default: the one it recommends for the target language]"
    ),
]
Metric = Annotated[
    Path | None, typer.Option(**saved("A learned metric, such as an imported COMET"))
]
TokensPerBatch = Annotated[
    int, typer.Option(min=1, help="Maximum number of source tokens per batch.")
]


def searching(options: type[Any], names: Collection[str]) -> Callable:
    """Decorate a command that takes `**options`: add each of these options to it.

    Search options are passed on only if they are given, because a model's folder may have its own.

    Args:
        options: The class of the options, such as `Search`.
        names: The options that the command takes.
    """
    of_search = issubclass(options, SearchOptions)

    def flag(field, hint):
        def checked(value):
            if value is not None and value != field.default:
                try:
                    field.metadata["check"](field.name, value)
                except ValueError as error:
                    raise typer.BadParameter(str(error)) from error
            return value

        text = field.metadata["help"]
        if of_search and "[default:" not in text:
            text += f"  [default: as saved, else {field.default}]"
        kind = hint | None if of_search else hint
        flags = field.metadata.get("flags", "").split()
        return Annotated[kind, typer.Option(*flags, help=text, callback=checked)]

    def decorate(command):
        @functools.wraps(command)
        def run(*arguments, **values):
            gone = [name for name in names if of_search and values.get(name, 0) is None]
            return command(*arguments, **{x: y for x, y in values.items() if x not in gone})

        return spelled_out(options, names, flag, **(dict.fromkeys(names) if of_search else {}))(run)

    return decorate


def loaded(folder: Path, others: list[Path] | None, **loading: Any) -> Any:
    """Return the translator of a folder, or its ensemble with others.

    Args:
        folder: Folder of a saved translator.
        others: Folders of the other translators of an ensemble; None or empty: no ensemble.
        loading: Further arguments of `Translator.load`.
    """
    from keras_transformer.translate.translator import Translator

    translator = Translator.load(folder, **loading)
    if not others:
        return translator
    from keras_transformer.translate.ensemble import ensemble

    return ensemble([translator, *(Translator.load(x, **loading) for x in others)])


def learned_metric(folder: Path | None) -> Any:
    """Return the `LearnedMetric` of a folder; None: None."""
    if folder is None:
        return None
    from keras_transformer.tasks.learned_metric import LearnedMetric

    return LearnedMetric.load(folder)


def directed(
    folder: Path, source: str | None, target: str | None, precision: str | None = None
) -> Any:
    """Return the translator of a folder; a multilingual model is set to a pair of languages.

    Args:
        folder: Folder of a saved translator.
        source, target: Language codes, used if the folder names no target language, or if the
            model is multilingual and `target` is given.
        precision: See `Translator.load`.
    """
    translator = loaded(folder, None, precision=precision)
    many = getattr(translator.tokenizer, "target_languages", ())
    chosen = not translator.target_language or (many and target)
    return translator.between(source, target) if chosen else translator


def write_utf8() -> None:
    """Let stdout write UTF-8, with LF at the end of lines, on every system."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")


@contextlib.contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """Yield a file to write to: a file that replaces `path` once it is complete; None: stdout."""
    if path is None:
        write_utf8()
        yield sys.stdout
        sys.stdout.flush()
    elif path.exists() and not path.is_file():  # a device or named pipe is not replaced
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    else:
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file


def check_output(input_file: Path | None, output_file: Path | None) -> None:
    """Raise ValueError if the output would replace the input."""
    if input_file is None or output_file is None:
        return
    same = input_file.exists() and output_file.exists() and output_file.samefile(input_file)
    require(not same, "--output", str(output_file), "another file than --input")


def answer_lines(
    input_file: Path | None,
    output_file: Path | None,
    answers: Callable[[list[Any]], Iterable[str]],
    lines: Iterator[Any],
    chunk_size: int | None = None,
) -> None:
    """Write the answers to lines, chunk by chunk.

    Args:
        input_file: File that the lines are from; None: stdin.
        output_file: File to write; None: stdout.
        answers: Function from a chunk of `lines` to the lines to write.
        lines: Texts of the file, see `reading.read_lines`, or other values made from these.
        chunk_size: Number of lines of a chunk; None: 1 for typed input, else `CHUNK`.
    """
    check_output(input_file, output_file)
    is_typed = input_file is None and sys.stdin.isatty()
    size = chunk_size or (1 if is_typed else CHUNK)

    def results():
        while chunk := list(itertools.islice(lines, size)):
            yield from answers(chunk)

    with opened(output_file) as out:
        shown = sys.stderr.isatty() and not is_typed and not out.isatty()
        for number, line in enumerate(counted(results(), "lines", shown), 1):
            out.write(line + "\n")
            if number % size == 0:
                out.flush()


def counted(values: Iterable[T], unit: str, shown: bool) -> Iterator[T]:
    """Yield the values, and show their count on stderr.

    Args:
        values: The values.
        unit: The word after the count, such as "lines".
        shown: Whether to show the count.
    """
    columns = SpinnerColumn(), TextColumn(f"{{task.completed:,.0f}} {unit}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("")
        for value in values:
            yield value
            progress.advance(task)


class SayHandler(logging.Handler):
    """A handler of logs that writes messages to stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message."""
        say(record.getMessage())


def say(message: str) -> None:
    """Write a line to stderr."""
    typer.echo(f"keras-transformer: {message}", err=True)
