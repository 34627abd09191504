"""Command that tests whether systems differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import Metric, Tokenize, learned_metric
from keras_transformer.cli.reading import read_lines


def compare(
    systems: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Translations by each system; first the baseline."),
    ],
    reference: Annotated[Path, typer.Option(help="Reference translations, one per line.")],
    test: Annotated[
        str,
        typer.Option(help="bootstrap (Koehn 2004), or randomization (Riezler and Maxwell 2005)."),
    ] = "bootstrap",
    samples: Annotated[
        int | None,
        typer.Option(min=1, help="Number of resamplings.  [default: 1000; 10000 of randomization]"),
    ] = None,
    tokenize: Tokenize = None,
    target_language: Annotated[
        str | None,
        typer.Option(help="Language of the translations.  [default: by the references' script]"),
    ] = None,
    metric: Metric = None,
    source: Annotated[
        Path | None, typer.Option(help="Source texts, one per line; for --metric.")
    ] = None,
) -> None:
    """Test whether the translations of each file are better than those of the first.

    Print BLEU, chrF and the score by --metric of each, with the half width of its 95 % confidence
    interval (bootstrap only) and, except for the first, the p-value: the probability of a
    difference as large as this if both were equally good. Then print the signatures.

    \b
    Example:
        keras-transformer compare baseline.de ours.de --reference test.de
    """
    from keras_transformer.evaluation import significance

    if (metric is None) != (source is None):
        raise ValueError("--metric and --source go together")
    texts = {str(path): list(read_lines(path, None, target_language)) for path in systems}
    if len(texts) < len(systems):
        raise ValueError(f"systems must be different files, got {[str(x) for x in systems]}")
    references = list(read_lines(reference, None, target_language))
    options: dict[str, Any] = dict(tokenize=tokenize, language=target_language)
    by_system = significance.compare(texts, references, test=test, samples=samples, **options)
    if metric is not None and source is not None:
        judge, sources = learned_metric(metric), list(read_lines(source, None, None))
        judged = {name: judge.score(sources, rows, references) for name, rows in texts.items()}
        for name, score in significance.compare_scores(judged, test=test, samples=samples).items():
            by_system[name][metric.name] = score
    width = max(map(len, by_system))
    for name, scores in by_system.items():
        parts = [
            f"{kind} {_shown(score, 2 if kind in ('BLEU', 'chrF') else 4)}"
            for kind, score in scores.items()
        ]
        typer.echo(f"{name:<{width}}  {'  '.join(parts)}")
    for kind, score in next(iter(by_system.values())).items():
        typer.echo(f"{kind:<{width}}  {score.signature}")


def _shown(score, digits):
    interval = "" if score.interval is None else f" ± {score.interval:.{digits}f}"
    p_value = "" if score.p_value is None else f" (p = {score.p_value:.4f})"
    return f"{score.score:.{digits}f}{interval}{p_value}"
