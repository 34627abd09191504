"""Command that makes preferences: the best and the worst of a translator's own translations."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    CHUNK,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    learned_metric,
    opened,
    say,
    searching,
)
from keras_transformer.cli.folders import saved
from keras_transformer.cli.reading import TEXT_FILE, TextField, read_lines
from keras_transformer.search import SAMPLE, Search


@searching(Search, SAMPLE)
def prefer(
    folder: Folder,
    metric: Annotated[Path, typer.Option(**saved("A learned metric, such as an imported COMET"))],
    input_file: Annotated[Path, typer.Option("--input", "-i", help=f"{TEXT_FILE}.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File of JSON lines to write.")],
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line.")
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=2, help="Translations of a text to choose from.")
    ] = 8,
    min_difference: Annotated[
        float, typer.Option(min=0, help="Leave out texts whose two scores differ by less.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    text_field: TextField = None,
    **options: Any,
) -> None:
    """Write preferences for training.preference_tuning, of a metric among translations.

    The chosen and the rejected answer are the best and the worst of the translation of each line,
    further samples, and the reference, if given.

    \b
    Example:
        keras-transformer prefer saved_models/mt --metric saved_models/comet -i news.en
            -o pairs.jsonl
    """
    from keras_transformer.translate.metric_preferences import metric_preferences
    from keras_transformer.translate.translator import Translator

    for option, path in (("--input", input_file), ("--reference", reference)):
        if path is not None and output.exists() and path.exists() and output.samefile(path):
            raise ValueError(f"--output must be another file than {option}, got {output}")
    judge = learned_metric(metric)
    translator = Translator.load(folder, precision, source_language, target_language)
    texts = list(read_lines(input_file, text_field))
    if not any(text.strip() for text in texts):
        raise ValueError(f"{input_file} must have at least one line of text, got none")
    references = None if reference is None else list(read_lines(reference, None))
    if references is not None and len(references) != len(texts):
        raise ValueError(
            f"--reference must have as many lines as --input, {len(texts)}, got {len(references)}"
        )
    count = 0
    with opened(output) as file:
        for start in range(0, len(texts), CHUNK):
            part = slice(start, start + CHUNK)
            for preference in metric_preferences(
                translator, judge, texts[part], references and references[part],
                candidates=candidates, min_difference=min_difference, seed=seed,
                tokens_per_batch=tokens_per_batch, **options,
            ):  # fmt: skip
                record = dataclasses.asdict(preference)
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                count += 1
    say(f"{count:,} preferences of {len(texts):,} texts")
