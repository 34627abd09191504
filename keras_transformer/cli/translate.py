"""Command that translates text."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.choices import DRAWS, check_choice, refuse
from keras_transformer.cli.common import (
    ContextSentences,
    Engine,
    EnsembleOf,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    check_output,
    counted,
    loaded,
    opened,
    searching,
)
from keras_transformer.cli.corpora import finish, is_folder
from keras_transformer.cli.reading import TEXT_FILE, TextField, read_lines, source_code
from keras_transformer.cli.rerank import (
    RerankLanguageModel,
    RerankReverse,
    RerankWeight,
    reranker,
)
from keras_transformer.cli.translations import pharaoh, translations, with_prefixes
from keras_transformer.config import require
from keras_transformer.corpora.options import NAMES, CorpusOptions
from keras_transformer.search import TRANSLATE, Search


@searching(CorpusOptions, NAMES)
@searching(Search, (*TRANSLATE, *DRAWS))
def translate(
    folder: Folder,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help=f"{TEXT_FILE}. For a folder as output, also several files and folders.  [default: "
            "stdin]",
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
    loading = dict(
        precision=precision,
        engine=engine,
        source_language=source_language,
        target_language=target_language,
    )
    models: dict[str, Any] = dict(rerank_weight=rerank_weight, rerank_reverse=rerank_reverse)
    models["rerank_language_model"] = rerank_language_model
    options |= dict(tokens_per_batch=tokens_per_batch, strict=strict)
    modes: dict[str, Any] = dict(context_sentences=context_sentences, inline_terms=inline_terms)
    modes["sample"] = sample
    prefixes: dict[str, Any] = dict(prefix=prefix, prefix_file=prefix_file)
    named = dict(glossary=glossary, seed=seed, alignments=alignments, **prefixes, **models)
    if is_folder(output):
        require(bool(inputs), "--input", inputs, "given when --output is a folder")
        refused = dict(ensemble=ensemble, mbr=mbr, rerank=rerank, chunk_size=chunk_size)
        refused |= {name: options.pop(name) for name in DRAWS if name in options}
        refuse("left out if --output is a folder", **refused, **modes, **named)
        from keras_transformer.corpora import translate_corpus

        job = dict(inputs=inputs, text_field=text_field or "text", num_hypotheses=num_hypotheses)
        finish(
            translate_corpus, folder=folder, output=output, **job, **loading, **corpus, **options
        )
        return
    for name, value in CorpusOptions.changed(corpus).items():
        name = f"--{name.replace('_', '-')}"
        raise ValueError(f'{name} needs a folder as --output, such as "out/", got {value!r}')
    accepted = 'one file, unless --output is a folder, such as "out/"'
    require(len(inputs or []) <= 1, "--input", inputs, accepted)
    input_file = Path(inputs[0]) if inputs else None
    named |= dict(options, num_hypotheses=num_hypotheses)
    check_choice(mbr, mbr_source, rerank, named, **modes)
    refuse("left out with --ensemble", alignments=alignments and bool(ensemble))
    inlined = None
    if inline_terms and glossary is not None:
        from keras_transformer.text.glossary import Glossary

        inlined = Glossary.read(glossary).inlined
    elif glossary is not None:
        options["constraint"] = _constraint(glossary, engine, options)
    translator = loaded(folder, ensemble, **loading)
    if inlined:
        _check_terms(folder, translator)
    if num_hypotheses is not None:
        options["num_hypotheses"] = num_hypotheses
    reranking = functools.partial(reranker, translator, *models.values(), precision=precision)
    choose = _method(translator, mbr, mbr_source, rerank, reranking, num_hypotheses, **modes)
    code = source_code(translator) if input_file else None
    lines = _changed(read_lines(input_file, text_field, code), inlined, context_sentences)
    pairs = with_prefixes(lines, **prefixes, name=str(input_file or "stdin"))
    draws = sample or (mbr is not None and mbr_source == "samples")
    stream_options = dict(
        seed=seed or 0 if draws else None, align=pharaoh(translator) if alignments else None
    )
    translate_chunk = functools.partial(choose, **options)
    _stream(translate_chunk, pairs, chunk_size, input_file, output and Path(output), stream_options)


def _method(translator, mbr, mbr_source, rerank, reranking, num_hypotheses, **modes):
    """Return the function that translates sources in the chosen way; it takes search options."""
    if modes["context_sentences"]:
        from keras_transformer.translate.documents import translate_windows

        return functools.partial(translate_windows, translator)
    if mbr is not None:
        from keras_transformer.translate.minimum_bayes_risk import translate_by_risk

        return functools.partial(translate_by_risk, translator, count=mbr, source=mbr_source)
    if rerank is not None:
        return functools.partial(reranking().translate, count=rerank)
    if modes["sample"]:
        return translator.sample
    return translator.translate if num_hypotheses is None else translator.nbest


def _changed(lines, inlined, context_sentences):
    """Return lines with inlined terms and context sentences, if these options are given."""
    lines = map(inlined, lines) if inlined else lines
    if context_sentences:
        from keras_transformer.text.context import in_context

        return in_context(lines, context_sentences)
    return lines


def _constraint(glossary, engine, options):
    from keras_transformer.text.glossary import Glossary

    require(engine == "keras", "--engine", engine, "keras with --glossary")
    require(not options.get("shortlist"), "--shortlist", True, "left out with --glossary")
    return Glossary.read(glossary)


def _check_terms(folder, translator):
    from keras_transformer.text.glossary import reads_terms

    accepted = "left out for a model that was trained without inline_terms"
    require(reads_terms(translator.tokenizer), "--inline-terms", f"{folder}", accepted)


def _stream(translate, pairs, chunk_size, input_file, output_file, options):
    """Translate stdin or one file to stdout or one file."""
    is_typed = input_file is None and sys.stdin.isatty()
    check_output(input_file, output_file)
    chunk_size = chunk_size or (1 if is_typed else 2048)
    lines = translations(translate, pairs, chunk_size, **options)
    with opened(output_file) as out:
        shown = sys.stderr.isatty() and not is_typed and not out.isatty()
        for number, line in enumerate(counted(lines, "lines", shown), 1):
            out.write(line + "\n")
            if number % chunk_size == 0:
                out.flush()
