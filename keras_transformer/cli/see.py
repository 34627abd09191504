"""Command that finds the classes of image files, or their vectors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Precision, searching, write_utf8
from keras_transformer.cli.folders import saved_argument
from keras_transformer.saved.uses import ClassifyOptions


@searching(ClassifyOptions, ["threshold"])
def see(
    folder: Annotated[Path, saved_argument("A saved image classifier or encoder")],
    images: Annotated[
        list[Path], typer.Argument(help="PNG, JPEG and other image files.", metavar="IMAGE")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON lines: all labels, or the vector.")
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per batch.")] = 32,
    precision: Precision = None,
    **options: Any,
) -> None:
    """Find the class of each image file.

    Write one line for each file: the most probable label, its probability and the name of the
    file, with tabs between them. With --json, write the name and all labels, best first.
    If an image may have any number of labels, write all above the threshold; for a regression,
    each label and its value.

    For an image encoder (a ViT without a classifier), write each image's vector, scaled to norm 1:
    numbers separated by spaces.

    \b
    Example:
        keras-transformer see saved_models/vit-mnist digit.png
    """
    from keras_transformer.saved.contents import read_config
    from keras_transformer.tasks.image_classifier import ImageClassifier
    from keras_transformer.tasks.image_embedder import ImageEmbedder

    is_encoder = read_config(folder, "image model").get("task") == ImageEmbedder.kind.task
    tool = (ImageEmbedder if is_encoder else ImageClassifier).load(folder, precision)

    def answers(files):
        if isinstance(tool, ImageEmbedder):
            for file, vector in zip(files, tool.embed(files, batch_size=batch_size), strict=True):
                numbers = [str(x) for x in vector]  # shortest text that is read as the same float32
                yield " ".join(numbers), file, {"embedding": [float(x) for x in numbers]}
            return
        classes = tool.classify(files, batch_size=batch_size, **options)
        for file, labels in zip(files, classes, strict=True):
            line = "\t".join(filter(None, (tool.in_words(labels), str(file))))
            yield line, file, {"labels": [dataclasses.asdict(x) for x in labels]}

    write_utf8()
    for start in range(0, len(images), batch_size):
        for line, file, fields in answers(images[start : start + batch_size]):
            record = {"image": str(file)} | fields
            print(json.dumps(record, ensure_ascii=False) if as_json else line, flush=True)
