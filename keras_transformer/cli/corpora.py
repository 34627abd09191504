"""The command that scores a corpus, and code that commands on corpora share."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from keras_transformer.cli.common import (
    Command,
    Engine,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    say,
    searching,
)
from keras_transformer.corpora.job_options import NAMES, JobOptions

_PAUSE = 60  # seconds between lines of progress in a log


class CorpusCommand(Command):
    """A command whose `--input` and `--target` take several values, as a shell expands `*.gz`.

    The folder of the model must then be the first argument of the command. If it is not, any value
    after the first could be that folder, so the option must be repeated for each value.
    """

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Parse the arguments; if the folder is first, repeat options before each value."""
        spread: list[str] = []
        option, has_folder = None, False
        for i, argument in enumerate(args):
            if argument.startswith("-") and argument != "-":
                option = argument if argument in ("--input", "-i", "--target") else None
                values = 0
            elif option is not None:
                values += 1
                if values > 1:
                    if not has_folder:
                        option = None
                    else:
                        spread.append(option)
            elif i == 0:
                has_folder = True
            spread.append(argument)
        return super().parse_args(context, spread)


def is_folder(output: str | None) -> bool:
    """Return whether an output is a folder: it exists as one, or its name ends with "/"."""
    return output is not None and (output.endswith(("/", os.sep)) or Path(output).is_dir())


def finish(run: Callable[..., Any], **arguments: Any) -> None:
    """Run a job over a corpus with progress on stderr; exit with status 1 if shards failed."""
    from keras_transformer.corpora import ShardError

    with _shown() as report:
        try:
            outcome = run(**arguments, report=report)
        except ShardError as error:
            outcome = error.outcome
    if outcome.warnings:
        say(f"warning: {outcome.warnings:,} warnings, the first: {outcome.warning}")
    if arguments["only_plan"]:
        say(f"{outcome.shards:,} shards of {outcome.lines:,} lines are planned")
        return
    before = f", {outcome.found:,} of them by earlier runs" if outcome.found else ""
    say(f"{outcome.done:,} of {outcome.shards:,} shards are in {arguments['output']}{before}")
    for shard, failure in outcome.failed.items():
        say(f"failed: {shard}: {failure}")
    if outcome.failed:
        raise typer.Exit(1)


@contextmanager
def _shown() -> Iterator[Callable[[Any], None]]:
    """Yield a function that shows a job's state: in a terminal one line, else a line a minute."""
    if not sys.stderr.isatty():
        last = time.monotonic()

        def log(outcome):
            nonlocal last
            if time.monotonic() - last >= _PAUSE:
                last = time.monotonic()
                say(_state(outcome))

        yield log
        return
    columns = SpinnerColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("")
        yield lambda outcome: progress.update(task, description=_state(outcome))


def _state(outcome):
    failed = f", {len(outcome.failed):,} failed" if outcome.failed else ""
    left = outcome.seconds_left
    left = "" if left is None else f", {_duration(left)} left"
    return (
        f"{outcome.done:,} of {outcome.shards:,} shards{failed}, {outcome.rate:,.0f} lines/s{left}"
    )


def _duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@searching(JobOptions, NAMES)
def score(
    folder: Folder,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--input",
            "-i",
            help="Files or folders of pairs: text with a tab between the two, JSON lines, TMX or "
            "Parquet; with --target, of source texts. May be .gz or .zst.",
        ),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder for the shards.")],
    targets: Annotated[
        list[str] | None,
        typer.Option("--target", help="Files or folders of target texts, line by line."),
    ] = None,
    source_field: Annotated[
        str,
        typer.Option(
            help="The source text: field of JSON lines, column of Parquet, language of TMX."
        ),
    ] = "source",
    target_field: Annotated[
        str,
        typer.Option(
            help="The target text: field of JSON lines, column of Parquet, language of TMX."
        ),
    ] = "target",
    tokens_per_batch: TokensPerBatch = 4096,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on a pair too long for the model; else score null."),
    ] = False,
    precision: Precision = None,
    engine: Engine = "keras",
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **corpus: Any,
) -> None:
    """Score the pairs of a parallel corpus.

    Write a folder of shards, with one JSON object for each pair, in order: log_probability of the
    target given the source, source_tokens and target_tokens. The same command resumes.

    \b
    Examples:
        keras-transformer score saved_models/grammar --input pairs.tsv --output scores/
        keras-transformer score saved_models/grammar -i news.en.gz --target news.de.gz -o scores/
    """
    from keras_transformer.corpora import score_corpus

    finish(
        score_corpus,
        folder=folder,
        inputs=inputs,
        output=output,
        targets=targets or None,
        source_field=source_field,
        target_field=target_field,
        tokens_per_batch=tokens_per_batch,
        strict=strict,
        precision=precision,
        engine=engine,
        source_language=source_language,
        target_language=target_language,
        **corpus,
    )
