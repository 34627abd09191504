"""Options of reranking, and the command that finds its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    Engine,
    EnsembleOf,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    directed,
    learned_metric,
    loaded,
    say,
    searching,
)
from keras_transformer.cli.folders import saved
from keras_transformer.cli.reading import read_sides
from keras_transformer.search import TRANSLATE, Search

RerankReverse = Annotated[
    Path | None,
    typer.Option(**saved("Translator of the other direction, for the weight reverse")),
]
RerankLanguageModel = Annotated[
    Path | None,
    typer.Option(**saved("Language model of the target language, for the weight language_model")),
]
RerankMetric = Annotated[
    Path | None,
    typer.Option(**saved("Learned metric without reference, for the weight metric")),
]
RerankWeight = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="Weight of forward (1 if not given), reverse, language_model, metric, coverage or "
        "length; may be repeated.",
    ),
]


def reranker(
    translator: Any,
    weights: list[str] | None,
    reverse: Path | None,
    language_model: Path | None,
    metric: Path | None = None,
    *,
    precision: str | None = None,
) -> Any:
    """Return the `Reranker` that a command's options describe.

    Args:
        translator: The translator.
        weights: Texts `NAME=NUMBER`; None: the defaults of `Reranker`.
        reverse: Folder of a translator of the other direction; None: no such translator.
        language_model: Folder of a language model; None: no such model.
        metric: Folder of a learned metric; None: no such model.
        precision: Precision of the first two models.

    Raises:
        ValueError: If a weight is not NAME=NUMBER; see also `Reranker`.
    """
    from keras_transformer.language.causal_lm import CausalLM
    from keras_transformer.translate.reranking import Reranker

    numbers = {}
    for text in weights or ():
        name, _, value = text.partition("=")
        try:
            numbers[name] = float(value)
        except ValueError as error:
            raise ValueError(f"--rerank-weight must be NAME=NUMBER, got {text!r}") from error
    source, target = translator.target_language, translator.source_language  # of the reverse
    back = directed(reverse, source, target, precision) if reverse else None
    model = CausalLM.load(language_model, precision) if language_model else None
    judge = learned_metric(metric)
    return Reranker(translator, numbers, reverse=back, language_model=model, metric=judge)


@searching(Search, [name for name in TRANSLATE if name != "beam_size"])
def tune_reranking(
    folder: Folder,
    source: Annotated[
        Path,
        typer.Option(
            help="Text of a validation set, one text per line; or a .tsv, .tmx, .jsonl or .parquet "
            "file with both sides."
        ),
    ],
    reference: Annotated[
        Path | None, typer.Option(help="Its translations, one per line of the source.")
    ] = None,
    rerank: Annotated[
        int, typer.Option(min=2, metavar="N", help="Size of the beam and of the n-best lists.")
    ] = 8,
    rerank_reverse: RerankReverse = None,
    rerank_language_model: RerankLanguageModel = None,
    rerank_metric: RerankMetric = None,
    rerank_weight: RerankWeight = None,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    engine: Engine = "keras",
    ensemble: EnsembleOf = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    **options: Any,
) -> None:
    """Find the weights with which translate --rerank has the highest BLEU on a validation set.

    The given weights name the features to use, and the search starts from them. Write the options
    with the best weights to stdout, BLEU to stderr.

    \b
    Example:
        keras-transformer tune-reranking saved_models/en-de --source dev.en --reference dev.de
            --rerank-reverse saved_models/de-en --rerank-weight reverse=0 --rerank-weight length=0
    """
    from keras_transformer.translate.reranking import tune_weights

    languages = dict(source_language=source_language, target_language=target_language)
    translator = loaded(folder, ensemble, precision=precision, engine=engine, **languages)
    models = rerank_reverse, rerank_language_model, rerank_metric
    chosen = reranker(translator, rerank_weight, *models, precision=precision)
    sources, references = read_sides(translator, source, reference)
    tuned = tune_weights(
        chosen, sources, references, rerank, tokens_per_batch=tokens_per_batch, **options
    )
    say(f"BLEU {tuned.bleu:.2f}, and {tuned.bleu_before:.2f} with the weights given")
    weights = tuned.reranker.weights.items()
    typer.echo(" ".join(f"--rerank-weight {name}={value:g}" for name, value in weights))
