"""Commands that translate text and evaluate translations."""

from __future__ import annotations

import itertools
import sys
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
    counted,
    loaded,
    opened,
    read_lines,
    searching,
)
from keras_transformer.cli.corpora import finish, is_folder
from keras_transformer.config import require
from keras_transformer.corpora.lines import one_line
from keras_transformer.corpora.options import NAMES, CorpusOptions
from keras_transformer.search import SAMPLE, TRANSLATE, Search


@searching(CorpusOptions, NAMES)
@searching(Search, TRANSLATE)
def translate(
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="Text file, one text per line; may be .gz. For a folder as output, also several "
            "files and folders of text, JSON lines or Parquet, .gz or .zst.  [default: stdin]",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help='File to write; a folder, or a name that ends with "/", for a corpus in shards.  '
            "[default: stdout]",
        ),
    ] = None,
    num_hypotheses: Annotated[
        int | None,
        typer.Option(
            "--num-hypotheses",
            "-n",
            min=1,
            help="Number of translations to write per line, as: index ||| text ||| score, or in a "
            "folder as JSON.",
        ),
    ] = None,
    mbr: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Take the translation that agrees most with N candidates (minimum Bayes risk).",
        ),
    ] = None,
    mbr_source: Annotated[
        str,
        typer.Option(help="Candidates of --mbr: nbest, of a beam search of size N; or samples."),
    ] = "nbest",
    tokens_per_batch: TokensPerBatch = 4096,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of lines to read, sort by length and translate together.  [default: 2048; "
            "1 for typed input]",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on a line too long for the model; else cut the line."),
    ] = False,
    precision: Precision = None,
    engine: Engine = "keras",
    ensemble: EnsembleOf = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    text_field: Annotated[
        str, typer.Option(help="Field of JSON lines or column of Parquet that holds the text.")
    ] = "text",
    **options: Any,
) -> None:
    """Translate lines of text.

    Write one line for each line read, in order; an empty line stays empty. With --num-hypotheses,
    write several lines for each, best first, in the format of Moses: the index counts input lines
    from 0, the score is the log-probability divided by the length penalty.

    With a folder as --output, translate a corpus: write shards that together hold one line for
    each line of the inputs. The same command resumes a job that was stopped.

    \b
    Examples:
        echo "The old man loves the dog." | keras-transformer translate saved_models/grammar
        keras-transformer translate saved_models/grammar -i news.en.gz -o news.de --beam-size 5
        keras-transformer translate saved_models/grammar -n 4 < news.en > news.nbest
        keras-transformer translate saved_models/grammar --engine ctranslate2 --precision int8
        keras-transformer translate saved_models/grammar --mbr 16 --mbr-source samples
        keras-transformer translate saved_models/nllb --target-language fra_Latn < news.en
        keras-transformer translate saved_models/grammar -i crawl/ -o out/ --processes 8
    """
    corpus = {name: options.pop(name) for name in NAMES}
    loading = dict(
        precision=precision,
        engine=engine,
        source_language=source_language,
        target_language=target_language,
    )
    options |= dict(tokens_per_batch=tokens_per_batch, strict=strict)
    if is_folder(output):
        require(bool(inputs), "--input", inputs, "given when --output is a folder")
        for name, value in {"--ensemble": ensemble, "--mbr": mbr}.items():
            require(not value, name, value, "left out if --output is a folder")
        require(chunk_size is None, "--chunk-size", chunk_size, "left out if --output is a folder")
        from keras_transformer.corpora import translate_corpus

        given = dict(inputs=inputs, text_field=text_field, num_hypotheses=num_hypotheses)
        finish(
            translate_corpus, folder=folder, output=output, **given, **loading, **corpus, **options
        )
        return
    for name, value in CorpusOptions.changed(corpus).items():
        name = f"--{name.replace('_', '-')}"
        raise ValueError(f'{name} needs a folder as --output, such as "out/", got {value!r}')
    options = Search.changed(options)  # an exported translator refuses options that are given
    accepted = 'one file, unless --output is a folder, such as "out/"'
    require(len(inputs or []) <= 1, "--input", inputs, accepted)
    input_file = Path(inputs[0]) if inputs else None
    if mbr is not None:
        for name in ("beam_size", "num_hypotheses"):
            given = dict(options, num_hypotheses=num_hypotheses).get(name)
            flag = f"--{name.replace('_', '-')}"
            require(given is None, flag, given, "left out with --mbr, which names the number")
        for name, value in options.items() if mbr_source == "samples" else ():
            fits = name in (*SAMPLE, "tokens_per_batch", "strict")
            flag = f"--{name.replace('_', '-')}"
            require(fits, flag, value, "left out with --mbr-source samples")
        options |= dict(count=mbr, source=mbr_source)
    translator = loaded(folder, ensemble, **loading)
    _stream(translator, input_file, output and Path(output), num_hypotheses, chunk_size, options)


def _stream(translator, input_file, output_file, num_hypotheses, chunk_size, options):
    """Translate stdin or one file to stdout or one file."""
    is_typed = input_file is None and sys.stdin.isatty()
    chunk_size = chunk_size or (1 if is_typed else 2048)
    lines = read_lines(input_file)
    if "count" in options:
        found = _by_risk(translator, lines, chunk_size, options)
    elif num_hypotheses is None:
        found = map(one_line, translator.translate_stream(lines, chunk_size=chunk_size, **options))
    else:
        options["num_hypotheses"] = num_hypotheses
        found = _nbest_lines(translator, lines, chunk_size, options)
    with opened(output_file) as out:
        shown = sys.stderr.isatty() and not is_typed and not out.isatty()
        for number, line in enumerate(counted(found, "lines", shown), 1):
            out.write(line + "\n")
            if number % chunk_size == 0:
                out.flush()


def _by_risk(translator, lines, chunk_size, options):
    from keras_transformer.evaluation.minimum_bayes_risk import translate_by_risk

    while chunk := list(itertools.islice(lines, chunk_size)):
        yield from map(one_line, translate_by_risk(translator, chunk, **options))


def _nbest_lines(translator, lines, chunk_size, options):
    index = itertools.count()
    while chunk := list(itertools.islice(lines, chunk_size)):
        for hypotheses in translator.nbest(chunk, **options):
            i = next(index)
            yield "\n".join(f"{i} ||| {one_line(h.text)} ||| {h.score:.4f}" for h in hypotheses)


@searching(Search, TRANSLATE)
def evaluate(
    folder: Folder,
    source: Annotated[
        Path | None,
        typer.Option(
            help="Text to translate, one text per line; or a .tsv, .tmx or .jsonl file with both "
            "sides."
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="Reference translations, one per line of the source.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A built-in corpus instead of files: grammar or multi30k.")
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
    **search: Any,
) -> None:
    """Measure quality and speed on a test set.

    Print a table of BLEU, chrF, TER, exact match, perplexity, time and tokens per second, and save
    it in the folder's metrics.json under the name of the test set; that of an ensemble is only
    printed.

    \b
    Examples:
        keras-transformer evaluate saved_models/wmt --source test.en --reference test.de
        keras-transformer evaluate saved_models/multi30k --corpus multi30k --moses
    """
    from keras_transformer.data.built_in_corpora import load_corpus
    from keras_transformer.data.text_files import read_pairs
    from keras_transformer.evaluation.assess import assess, save_metrics
    from keras_transformer.evaluation.scores import table
    from keras_transformer.text.languages import short_code

    if (source is None) == (corpus is None):
        raise ValueError("give either --source (and --reference) or --corpus")
    if source is None and reference is not None:
        raise ValueError("--reference belongs to --source, not to --corpus")
    if corpus is None and data_folder is not None:
        raise ValueError("--data-folder belongs to --corpus, not to --source")
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
        published_language=languages["target_language"] if moses else None,
        summaries=rouge,
        **search,
    )
    if not ensemble:
        save_metrics(folder, name, metrics)
    typer.echo(table({"test_set": name, **metrics}))
