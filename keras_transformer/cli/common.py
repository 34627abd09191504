"""Shared parts of the commands: errors, common options, lines in and out.

The modules of the command line import no framework and nothing of the library that does: a command
imports what it runs in its body, so that `--help` and completion cost a tenth of a second, not six.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperCommand, TyperGroup

from keras_transformer.search import SearchOptions, spelled_out
from keras_transformer.system.failures import BAD_INPUT, in_one_line
from keras_transformer.system.files import replacing


class Commands(TyperGroup):
    """Commands that say in one line what the user can mend; with `--debug`, where it arose."""

    def invoke(self, context):
        """Runs a command; exit status 2 if what it was given is wrong."""
        try:
            return super().invoke(context)
        except BrokenPipeError:  # the reader has had enough: no error of ours
            raise
        except BAD_INPUT as error:
            if context.params["debug"]:
                raise
            say(in_one_line(error))
            raise typer.Exit(2) from error


class Command(TyperCommand):
    """A command whose compilations JAX keeps for the next process."""

    def invoke(self, context):
        """Runs the command."""
        from keras_transformer.backend import keep_compilations

        keep_compilations()
        return super().invoke(context)


Folder = Annotated[Path, typer.Argument(help="A saved translator.", metavar="FOLDER")]
SourceLanguage = Annotated[
    str | None,
    typer.Option(help="Of a model of many languages, as its files name it.  [default: as saved]"),
]
TargetLanguage = Annotated[
    str | None, typer.Option(help="The same, of the translation.  [default: as saved]")
]
Precision = Annotated[
    str | None,
    typer.Option(help="float32, bfloat16, float16 or int8.  [default: as the model was saved]"),
]
TokensPerBatch = Annotated[int, typer.Option(min=1, help="Most source tokens in a batch.")]


def searching(options: type[SearchOptions], names: Collection[str]) -> Callable:
    """Decorate a command that takes `**search`: it gets each of these options of a search."""

    def flag(field, hint):
        def checked(value):
            if value != field.default:
                try:
                    field.metadata["check"](field.name, value)
                except ValueError as error:
                    raise typer.BadParameter(str(error)) from error
            return value

        return Annotated[hint, typer.Option(help=field.metadata["help"], callback=checked)]

    return spelled_out(options, names, flag)


def read_lines(path: Path | None) -> Iterator[str]:
    """Yield the lines of a file, or of stdin."""
    from keras_transformer.data.text_files import iterate_lines

    if path is not None:
        yield from iterate_lines(path)
        return
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"stdin, line {number}: invalid UTF-8 ({error})") from error
        yield text.rstrip("\r\n")


def one_line(text: str) -> str:
    """The text without the line ends that byte pieces can spell."""
    return text.replace("\r", " ").replace("\n", " ")


@contextlib.contextmanager
def opened(path: Path | None) -> Iterator[TextIO]:
    """Opens stdout or a file, which is replaced when all is written."""
    if path is None:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        sys.stdout.flush()
    elif path.exists() and not path.is_file():  # a device or a named pipe must stay one
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    else:
        with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            yield file


def counted(values: Iterable[str], unit: str, shown: bool) -> Iterator[str]:
    """Passes the values on and counts them on stderr."""
    columns = SpinnerColumn(), TextColumn(f"{{task.completed:,.0f}} {unit}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("")
        for value in values:
            yield value
            progress.advance(task)


def say(message: str) -> None:
    """One line on stderr."""
    typer.echo(f"keras-transformer: {message}", err=True)
