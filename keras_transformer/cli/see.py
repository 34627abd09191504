"""Command that finds the classes of image files."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from keras_transformer.cli.common import Precision


def see(
    folder: Annotated[Path, typer.Argument(help="A saved image classifier.", metavar="FOLDER")],
    images: Annotated[
        list[Path], typer.Argument(help="PNG, JPEG and other image files.", metavar="IMAGE")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON lines, with all labels.")] = (
        False
    ),
    batch_size: Annotated[int, typer.Option(min=1, help="Images per batch.")] = 32,
    precision: Precision = None,
) -> None:
    """Find the class of each image file.

    Write one line for each file: the most probable label, its probability and the name of the
    file, with tabs between them. With --json, write the name and all labels, best first.

    \b
    Example:
        keras-transformer see saved_models/vit-mnist digit.png
    """
    from keras_transformer.inference.image_classifier import ImageClassifier

    classifier = ImageClassifier.load(folder, precision)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for start in range(0, len(images), batch_size):
        files = images[start : start + batch_size]
        found = classifier.classify(files, batch_size=batch_size)
        for file, labels in zip(files, found, strict=True):
            record = {"image": str(file), "labels": [dataclasses.asdict(x) for x in labels]}
            line = f"{labels[0].label}\t{labels[0].probability:.4f}\t{file}"
            print(json.dumps(record, ensure_ascii=False) if as_json else line, flush=True)
