"""Command that writes an error report of a translator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    Tokenize,
    TokensPerBatch,
    searching,
)
from keras_transformer.cli.reading import read_lines, read_sides, target_code
from keras_transformer.config import require
from keras_transformer.search import TRANSLATE, Search
from keras_transformer.system.files import replacing


@searching(Search, TRANSLATE)
def report(
    folder: Folder,
    source: Annotated[
        Path,
        typer.Option(
            help="Text to translate, one text per line; or a .tsv, .tmx, .jsonl or .parquet file "
            "with both sides."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .html file to write.")],
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line of the source.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Translations by another system, one per line, to compare with."),
    ] = None,
    worst: Annotated[int, typer.Option(min=0, help="Number of worst sentences to show.")] = 30,
    tokenize: Tokenize = None,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **search: Any,
) -> None:
    """Write a report of a translator's errors on a test set, as one HTML file.

    It has the scores with confidence intervals, the distribution of the sentences' scores, quality
    by length, signs of errors such as repeated words or lost numbers, and the sentences with the
    lowest chrF: each with the words that differ from the reference, and its attention. The file
    loads nothing from elsewhere.

    \b
    Examples:
        keras-transformer report saved_models/wmt --source test.en --reference test.de -o wmt.html
        keras-transformer report saved_models/wmt --source test.en --reference test.de
            --baseline other.de -o wmt.html
    """
    from keras_transformer.analysis.report import measure, page
    from keras_transformer.saved.contents import read_config
    from keras_transformer.translate.quality_estimation import QualityEstimator
    from keras_transformer.translate.translator import Translator

    require(output.suffix in (".html", ".htm"), "--output", str(output), "an .html file")
    read_config(folder, "translator")  # an exported translator has no attention
    estimator = QualityEstimator.read(folder, **search)
    translator = Translator.load(folder, precision, source_language, target_language)
    if estimator is not None and not estimator.suits(translator):
        estimator = None  # it was fitted to another pair of languages
    pairs = list(zip(*read_sides(translator, source, reference), strict=True))
    code = target_code(translator)
    others = None if baseline is None else list(read_lines(baseline, None, code))
    measures = measure(
        translator,
        pairs,
        worst=worst,
        baseline=others,
        estimator=estimator,
        tokenize=tokenize,
        tokens_per_batch=tokens_per_batch,
        **search,
    )
    title = f"{folder.resolve().name} on {source.name}"
    with replacing(output) as temporary:
        text = page(measures, title, translator.target_language)
        temporary.write_text(text, "utf-8", newline="\n")
    typer.echo(output)
