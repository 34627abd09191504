"""The command that trains: a translator, or with `--task` a model of another task."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Command
from keras_transformer.config import require
from keras_transformer.training.recipe import names, settings

TRANSLATE = "translate"
# Modules of keras_transformer.training by task. Most tasks have the name of the command that runs
# their models.
TASKS = {
    "answer": "question_answering",
    "chat": "chat_tuning",
    "classify": "text_classification",
    "dna": "dna",
    "embed": "text_embedding",
    "fill": "masked_language_model",
    "generate": "language_model",
    "metric": "metric_training",
    "parse": "parsing",
    "preferences": "preference_tuning",
    "protein": "protein",
    "regress": "token_regression",
    "see": "image_classification",
    "span-corruption": "span_corruption",
    "speak": "speech_synthesis",
    "tag": "token_classification",
    "transcribe": "speech_recognition",
    "translate-lm": "prompted_translation",
}


class TrainCommand(Command):
    """`train`; with `--task NAME`, a command with the options and the help of that task."""

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **extra: Any) -> Any:
        """Read the options of the task."""
        parser = argparse.ArgumentParser(info_name, add_help=False, allow_abbrev=False)
        parser.add_argument("--task", nargs="?", default=TRANSLATE)
        chosen, others = parser.parse_known_args(args)
        if chosen.task == TRANSLATE:
            return super().make_context(info_name, args, *more, **extra)
        accepted = f"one of {', '.join((TRANSLATE, *TASKS))}"
        require(chosen.task in TASKS, "--task", chosen.task, accepted)
        module = importlib.import_module(f"keras_transformer.training.{TASKS[chosen.task]}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=Command)(module.train)
        command = typer.main.get_command(app)
        return command.make_context(f"{info_name} --task {chosen.task}", others, *more, **extra)


def train(
    task: Annotated[
        str,
        typer.Option(
            help=f"What to train: {TRANSLATE}, {', '.join(TASKS)}. Each has its own options, which "
            "--task NAME --help lists."
        ),
    ] = TRANSLATE,
    recipe: Annotated[
        str, typer.Option(help=f"Name of a recipe ({', '.join(names())}), or a TOML file.")
    ] = "grammar",
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write the run to.  [default: saved_models/RECIPE]"),
    ] = None,
    data_folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the files of the corpus, or of the recipe's corpora.  [default: "
            "download them; the folder of the recipe]"
        ),
    ] = None,
    train_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--train",
            help="Training text: a .tsv, .tmx, .jsonl or .parquet file, or two text files, source "
            "and target, each with --train.  [default: the recipe's corpus]",
        ),
    ] = None,
    validation_files: Annotated[
        list[Path] | None,
        typer.Option("--validation", help="Validation text, likewise; required with --train."),
    ] = None,
    test_files: Annotated[
        list[Path] | None,
        typer.Option("--test", help="Test text for the final evaluation, likewise."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A saved or imported translator to train further. Its weights, vocabulary and "
            "sizes replace the recipe's; of the recipe's model options, dropout, layer_drop and "
            "guided_alignment are used."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Change an option of the recipe, such as epochs=3 or model.d_model=256; may be "
            "given several times. The options, with the defaults of recipes that do not set them: "
            f"{', '.join(settings())}.",
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that prepare batches; 0: a thread.")
    ] = 0,
    tensorboard: Annotated[
        bool, typer.Option(help="Write TensorBoard files into the run's folder.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option(help="Start over even if the folder holds a run.")
    ] = False,
) -> None:
    """Train a translator, or a model of another task, and save it with its measured quality.

    The tasks translate, translate-lm, generate and chat save checkpoints, also at SIGTERM and
    Ctrl-C: run the same command again to resume from the last one. The environment variable
    KERAS_BACKEND chooses the backend.

    \b
    Examples:
        keras-transformer train --recipe multi30k --output saved_models/multi30k
        keras-transformer train --recipe base --train train.en --train train.de
            --validation dev.en --validation dev.de --set tokens_per_batch=8000
        keras-transformer train --recipe multi30k --start-from saved_models/opus-mt-en-de
            --set lora_rank=16 --set epochs=1
        keras-transformer train --task classify --train train.tsv --validation dev.tsv
            --test test.tsv --output saved_models/sentiment
    """
    require(task == TRANSLATE, "task", task, TRANSLATE)
    from keras_transformer.training import translation

    translation.train(
        recipe=recipe,
        output=output,
        data_folder=data_folder,
        train_files=train_files,
        validation_files=validation_files,
        test_files=test_files,
        start_from=start_from,
        changes=changes,
        workers=workers,
        tensorboard=tensorboard,
        overwrite=overwrite,
    )
