"""The command that trains a translator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.training.recipes import names


def train(
    recipe: Annotated[
        str, typer.Option(help=f"A recipe ({', '.join(names())}), or a TOML file of your own.")
    ] = "grammar",
    output: Annotated[
        Path | None, typer.Option(help="Folder of the run. Default: saved_models/RECIPE.")
    ] = None,
    data_folder: Annotated[
        Path | None, typer.Option(help="Where the corpus's files are; else they are fetched.")
    ] = None,
    train_files: Annotated[
        list[Path] | None,
        typer.Option("--train", help="Your own text: a .tsv, .tmx or .jsonl; or give it twice."),
    ] = None,
    validation_files: Annotated[
        list[Path] | None, typer.Option("--validation", help="The same, for validation.")
    ] = None,
    test_files: Annotated[
        list[Path] | None, typer.Option("--test", help="The same, for the last measurement.")
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="A saved or imported translator to train further: its weights, pieces and sizes "
            "in place of the recipe's, of whose model options only dropout counts."
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change an option of the recipe: epochs=3, model.d_model=256."),
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that make batches; 0: a thread.")
    ] = 0,
    tensorboard: Annotated[
        bool, typer.Option(help="Write TensorBoard files into the run.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option(help="Begin anew even if the folder holds a run.")
    ] = False,
) -> None:
    """Trains a translator and saves it with its tokenizer and its measured quality.

    The same command again resumes from the last checkpoint; SIGTERM and Ctrl-C save one. The
    backend is KERAS_BACKEND's.

    \b
    Examples:
        keras-transformer train --recipe multi30k --output saved_models/multi30k
        keras-transformer train --recipe base --train train.en --train train.de
            --validation dev.en --validation dev.de --set tokens_per_batch=8000
        keras-transformer train --recipe multi30k --start-from saved_models/opus-mt-en-de
            --set lora_rank=16 --set epochs=1
    """
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
