"""Command that translates text."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    ContextSentences,
    Engine,
    EnsembleOf,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    searching,
)
from keras_transformer.cli.corpora import is_folder
from keras_transformer.cli.folders import saved
from keras_transformer.cli.reading import TEXT_FILE, TextField
from keras_transformer.cli.rerank import (
    RerankLanguageModel,
    RerankMetric,
    RerankReverse,
    RerankWeight,
)
from keras_transformer.cli.translation_modes import (
    DRAWS,
    is_document,
    refuse_conflicts,
    translate_document,
    translate_lines,
    translate_to_folder,
)
from keras_transformer.corpora.job_options import NAMES, JobOptions
from keras_transformer.search import TRANSLATE, Search


@searching(JobOptions, NAMES)
@searching(Search, (*TRANSLATE, *DRAWS))
def translate(
    folder: Folder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="Texts to translate, in place of --input."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help=f"{TEXT_FILE}; or a document, such as Markdown, XLIFF or .docx. For a folder as "
            "output, also several files and folders.  [default: stdin]",
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
    mbr_metric: Annotated[
        Path | None,
        typer.Option(
            **saved("Learned metric by which candidates of --mbr agree, in place of chrF")
        ),
    ] = None,
    rerank: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Take the best of the N best translations by a weighted sum of several models.",
        ),
    ] = None,
    rerank_reverse: RerankReverse = None,
    rerank_language_model: RerankLanguageModel = None,
    rerank_metric: RerankMetric = None,
    rerank_weight: RerankWeight = None,
    tokens_per_batch: TokensPerBatch = 4096,
    chunk_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of lines to read, sort by length and translate together.  [default: 2048; "
            "1 for typed input]",
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Draw random translations, at --temperature (1)."),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of --sample and --mbr-source samples.  [default: 0]"),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Text that every translation begins with.")
    ] = None,
    prefix_file: Annotated[
        Path | None,
        typer.Option(
            help="File of texts that translations begin with, one per line; an empty one forces "
            "nothing."
        ),
    ] = None,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments",
            help="Write ||| and the word alignment after each translation, as in 0-0 1-2: numbers "
            "of words between white space, source first.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on a line too long for the model; else cut the line."),
    ] = False,
    precision: Precision = None,
    engine: Engine = "keras",
    ensemble: EnsembleOf = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            help="Text file of terms that translations must have: per line, a source term and the "
            "forms of its translation, separated by tabs."
        ),
    ] = None,
    inline_terms: Annotated[
        bool,
        typer.Option(
            "--inline-terms",
            help="Write the first form of each term into the source, for a model that was trained "
            "with `inline_terms`, instead of constraining the search.",
        ),
    ] = False,
    context_sentences: ContextSentences = 0,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    text_field: TextField = None,
    **options: Any,
) -> None:
    """Translate texts: those on the command line, or the lines of stdin or of a file.

    Write one line for each line read, in order; an empty line stays empty. With --num-hypotheses,
    write several lines for each, best first, in the format of Moses: the index counts input lines
    from 0, the score is the log-probability divided by the length penalty.

    With a folder as --output, translate a corpus: write shards that together hold one line for
    each line of the inputs. The same command resumes a job that was stopped.

    \b
    Examples:
        keras-transformer translate tatoeba --target-language de "Where is the station?"
        echo "The old man loves the dog." | keras-transformer translate saved_models/grammar
        keras-transformer translate saved_models/grammar -i news.en.gz -o news.de --beam-size 5
        keras-transformer translate saved_models/grammar -n 4 < news.en > news.nbest
        keras-transformer translate saved_models/grammar --engine ctranslate2 --precision int8
        keras-transformer translate saved_models/grammar --mbr 16 --mbr-source samples
        keras-transformer translate saved_models/en-de --rerank 8 --rerank-weight reverse=0.5
            --rerank-reverse saved_models/de-en
        keras-transformer translate saved_models/grammar --glossary terms.tsv < news.en
        keras-transformer translate saved_models/grammar --prefix "Der" --alignments < news.en
        keras-transformer translate saved_models/grammar --sample --top-k 10 --seed 1 < news.en
        keras-transformer translate saved_models/documents --context-sentences 2 < book.en
        keras-transformer translate saved_models/nllb --target-language fra_Latn < news.en
        keras-transformer translate saved_models/grammar -i crawl/ -o out/ --processes 8
    """
    corpus = {name: options.pop(name) for name in NAMES}
    search = dict(options, tokens_per_batch=tokens_per_batch, strict=strict)
    is_corpus = is_folder(output)
    asked = SimpleNamespace(**locals())  # all options by name
    refuse_conflicts(asked)
    run = translate_document if is_document(asked) else translate_lines
    (translate_to_folder if is_corpus else run)(asked)
