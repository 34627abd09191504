"""Command that evaluates a translator on a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    ContextSentences,
    Engine,
    EnsembleOf,
    Folder,
    Metric,
    Precision,
    SourceLanguage,
    TargetLanguage,
    Tokenize,
    TokensPerBatch,
    learned_metric,
    loaded,
    say,
    searching,
)
from keras_transformer.search import TRANSLATE, Search


@searching(Search, TRANSLATE)
def evaluate(
    folder: Folder,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to translate, one text per line; or a .tsv, .tmx, .jsonl or .parquet file "
            "with both sides."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line of the source.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="A built-in corpus instead of files: grammar, documents or multi30k."),
    ] = None,
    data_folder: Annotated[
        Path | None,
        typer.Option(help="Folder with the files of the corpus.  [default: download them]"),
    ] = None,
    test_set: Annotated[
        str | None,
        typer.Option(
            help="Test set of the corpus, or the name under which to save the scores of files.  "
            "[default: the corpus's first, or the file's name]"
        ),
    ] = None,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    engine: Engine = "keras",
    ensemble: EnsembleOf = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    lowercase: Annotated[
        bool, typer.Option("--lowercase", help="Ignore case in BLEU, chrF and exact match.")
    ] = False,
    tokenize: Tokenize = None,
    moses: Annotated[
        bool,
        typer.Option(
            "--moses",
            help="Also compute BLEU as papers on Multi30k do: lower-cased, Moses-tokenised.",
        ),
    ] = False,
    rouge: Annotated[
        bool,
        typer.Option("--rouge", help="Also compute ROUGE-1, ROUGE-2 and ROUGE-L of summaries."),
    ] = False,
    context_sentences: ContextSentences = 0,
    metric: Metric = None,
    **search: Any,
) -> None:
    """Measure quality and speed on a test set.

    Print a table of BLEU, chrF, TER, exact match, perplexity, time and tokens per second, and the
    mean score by a learned metric, if one is given. Save it in the folder's metrics.json under the
    name of the test set. The table of an ensemble is only printed.

    \b
    Examples:
        keras-transformer evaluate saved_models/wmt --source test.en --reference test.de
        keras-transformer evaluate saved_models/multi30k --corpus multi30k --moses
    """
    from keras_transformer.data.built_in_corpora import load_corpus
    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.evaluation.assess import assess, read_metrics, save_metrics
    from keras_transformer.evaluation.scores import table
    from keras_transformer.text.languages import short_code

    if (source is None) == (corpus is None):
        raise ValueError("give either --source (and --reference) or --corpus")
    if source is None and reference is not None:
        raise ValueError("--reference belongs to --source, not to --corpus")
    if context_sentences and source is not None and reference is None:
        raise ValueError("--context-sentences needs --source and --reference, two text files")
    if corpus is None and data_folder is not None:
        raise ValueError("--data-folder belongs to --corpus, not to --source")
    learned = learned_metric(metric)
    loading = dict(
        precision=precision,
        engine=engine,
        source_language=source_language,
        target_language=target_language,
    )
    translator = loaded(folder, ensemble, **loading)
    languages = dict(
        source_language=short_code(translator.source_language or "en"),
        target_language=short_code(translator.target_language or "de"),
    )
    if source is not None:
        pairs = read_pairs(source, reference, **languages)
        name = test_set or source.name.split(".")[0]
    else:
        assert corpus is not None, "there is no source"
        tests = load_corpus(corpus, data_folder, train_size=1, **languages).tests
        name = test_set or next(iter(tests))
        if name not in tests:
            raise ValueError(f"--test-set of {corpus} must be one of {list(tests)}, got {name!r}")
        pairs = tests[name]
    metrics = assess(
        translator,
        pairs,
        tokens_per_batch=tokens_per_batch,
        lowercase=lowercase,
        tokenize=tokenize,
        published_language=languages["target_language"] if moses else None,
        summaries=rouge,
        context_sentences=context_sentences,
        learned={metric.name: learned} if metric else None,
        **search,
    )
    if not ensemble:
        if name in read_metrics(folder):
            say(f"replaces the scores of {name!r} in metrics.json; --test-set NAME keeps both")
        save_metrics(folder, name, metrics)
    typer.echo(table({"test_set": name, **metrics}))
