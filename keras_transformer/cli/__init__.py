"""The command line: train, translate, evaluate, generate, import and more."""

from __future__ import annotations

import logging
import warnings
from typing import Annotated

import typer

from keras_transformer import __version__
from keras_transformer.cli.augment import back_translate, distill
from keras_transformer.cli.calibrate import calibrate
from keras_transformer.cli.clean import clean
from keras_transformer.cli.common import Command, Commands, SayHandler, say
from keras_transformer.cli.compare import compare
from keras_transformer.cli.convert import average, export, import_, info, merge
from keras_transformer.cli.corpora import CorpusCommand, score
from keras_transformer.cli.embed import embed
from keras_transformer.cli.evaluate import evaluate
from keras_transformer.cli.generate import generate
from keras_transformer.cli.launch import launch
from keras_transformer.cli.live import live
from keras_transformer.cli.mine import mine
from keras_transformer.cli.plot import app as plot
from keras_transformer.cli.plot_heads import plot_attention_heads
from keras_transformer.cli.prefer import prefer
from keras_transformer.cli.rank import rank
from keras_transformer.cli.report import report
from keras_transformer.cli.rerank import tune_reranking
from keras_transformer.cli.see import see
from keras_transformer.cli.serve import serve
from keras_transformer.cli.shortlist import shortlist
from keras_transformer.cli.speech import speak, subtitles, transcribe
from keras_transformer.cli.tasks import COMMANDS
from keras_transformer.cli.terminal_chat import chat
from keras_transformer.cli.train import TrainCommand, train
from keras_transformer.cli.translate import translate

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""The Transformer for Keras 3: train, evaluate, export and run models.

\b
    keras-transformer train --recipe grammar
    keras-transformer translate saved_models/grammar < english.txt > german.txt
    keras-transformer generate saved_models/shakespeare "ROMEO:"
    keras-transformer chat saved_models/assistant
    keras-transformer classify saved_models/sentiment < reviews.txt
    keras-transformer export saved_models/grammar serving/grammar

The environment variable KERAS_BACKEND chooses the backend: tensorflow, jax or torch. A saved model
is a folder that every backend can read.""",
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"keras-transformer {__version__}")
        raise typer.Exit()


@app.callback()
def _options(
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="KERAS_TRANSFORMER_DEBUG", help="Show error tracebacks."),
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    warnings.showwarning = lambda message, *rest, **options: say(f"warning: {message}")
    choices = logging.getLogger("keras_transformer.engine")
    choices.setLevel(logging.INFO)
    choices.handlers = [SayHandler()]


app.command(cls=TrainCommand)(train)
app.command(cls=Command)(launch)
for command in (translate, score):
    app.command(cls=CorpusCommand)(command)
for command in (live, evaluate, generate, chat, transcribe, subtitles, speak, *COMMANDS):
    app.command(cls=Command)(command)
for command in (embed, rank, see, clean, mine, prefer, back_translate, distill):
    app.command(cls=Command)(command)
app.command("import", cls=Command)(import_)
for command in (compare, report, calibrate, tune_reranking):
    app.command(cls=Command)(command)
for command in (serve, export, average, merge, shortlist, info):
    app.command(cls=Command)(command)
plot.command("heads", cls=Command)(plot_attention_heads)
app.add_typer(plot, name="plot")


def main() -> None:
    """Run the command line."""
    app()
