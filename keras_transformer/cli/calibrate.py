"""Command that calibrates a translator's confidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    searching,
)
from keras_transformer.cli.reading import read_sides
from keras_transformer.search import TRANSLATE, Search


@searching(Search, TRANSLATE)
def calibrate(
    folder: Folder,
    source: Annotated[
        Path,
        typer.Option(
            help="Text that the translator was not trained on, one text per line; or a .tsv, .tmx, "
            ".jsonl or .parquet file with both sides."
        ),
    ],
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line of the source.")
    ] = None,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """Learn from validation data to estimate the quality of translations from their confidence.

    Write the file quality.json into FOLDER. `report` then estimates the quality of each translation
    without its reference, and so do `serve` and its page. Give the search options that will be used
    later: the calibration is valid only for these. Print how the estimates correlate with the chrF
    of these sentences.

    \b
    Example:
        keras-transformer calibrate saved_models/wmt --source dev.en --reference dev.de
    """
    from keras_transformer.evaluation.scores import table
    from keras_transformer.saved.contents import read_config
    from keras_transformer.translate.quality_estimation import (
        QUALITY,
        QualityEstimator,
        correlation,
        sentence_chrf,
    )
    from keras_transformer.translate.translator import Translator

    read_config(folder, "translator")  # an exported translator cannot be calibrated
    translator = Translator.load(folder, precision, source_language, target_language)
    sources, references = read_sides(translator, source, reference)
    limit = dict(tokens_per_batch=tokens_per_batch)
    translations = translator.translate(sources, **limit, **search)
    fitted = QualityEstimator.fit(translator, sources, translations, references, **limit, **search)
    fitted.save(folder)
    chrf = sentence_chrf(translations, references)
    correlations = correlation(fitted.estimate(translator, sources, translations, **limit), chrf)
    typer.echo(table({"file": folder / QUALITY, "sentences": fitted.sentences, **correlations}))
