"""The modes of `translate`: a function for each, and the options that exclude each other."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from keras_transformer.cli.common import answer_lines, learned_metric, loaded, say
from keras_transformer.cli.corpora import finish
from keras_transformer.cli.reading import read_lines, source_code
from keras_transformer.cli.rerank import reranker
from keras_transformer.cli.translations import pharaoh, translations, with_prefixes
from keras_transformer.config import require
from keras_transformer.corpora.job_options import JobOptions
from keras_transformer.search import NBEST, SAMPLE, Search
from keras_transformer.system.files import replacing

DRAWS = tuple(Search.names(draws=True))  # options of sampling only
_LOADING = ("precision", "engine", "source_language", "target_language")
_RERANK = ("rerank_weight", "rerank_reverse", "rerank_language_model", "rerank_metric")
_COUNTS = ("beam_size", "num_hypotheses")
_UNDRAWN = ("glossary", *(name for name in NBEST if name not in SAMPLE))
_OF_LINES = (
    *("ensemble", "mbr", "rerank", "chunk_size", *DRAWS, "context_sentences", "inline_terms"),
    *("mbr_metric", "sample", "glossary", "seed", "alignments", "prefix", "prefix_file", *_RERANK),
)
MOST_TOKENS = 10_000_000  # of a document, and its most paragraphs
DOCUMENTS = (
    *(".md", ".markdown", ".xlf", ".xliff", ".html", ".htm", ".srt", ".vtt"),
    *(".docx", ".pptx", ".odt", ".odp"),
)  # suffixes of files that keep their format
_NO_CONTEXT = ("sample", "mbr", "rerank", "num_hypotheses", "alignments", "prefix", "prefix_file")


def _draws(asked):
    return asked.sample or (asked.mbr and asked.mbr_source == "samples")


def is_document(asked: Any) -> bool:
    """Return whether the only input is a document, whose format the output keeps."""
    inputs = [] if asked.is_corpus else asked.inputs or []
    return len(inputs) == 1 and Path(inputs[0]).suffix.lower() in DOCUMENTS


# (end of the error message, condition, options that must be left out if the condition is true).
# With --inline-terms, the sources contain terms of the target language, which neither the reverse
# translator nor the aligner can use.
CONFLICTS: tuple[tuple[str, Callable[[Any], Any], Iterable[str]], ...] = (
    ("for a document", is_document, (*_OF_LINES, "num_hypotheses", "text_field")),
    ("if --output is a folder", lambda x: x.is_corpus, _OF_LINES),
    ("with --context-sentences", lambda x: x.context_sentences, _NO_CONTEXT),
    ("without --glossary", lambda x: not x.glossary, ("inline_terms",)),
    ("with --inline-terms", lambda x: x.inline_terms, ("rerank_reverse", "alignments")),
    ("with --prefix-file", lambda x: x.prefix_file, ("prefix",)),
    ("with --sample", lambda x: x.sample, ("mbr", "rerank", *_UNDRAWN)),
    ("with --mbr", lambda x: x.mbr, ("rerank",)),
    ("with --mbr, which names the number", lambda x: x.mbr, _COUNTS),
    ("with --rerank, which names the number", lambda x: x.rerank, _COUNTS),
    ("without --mbr", lambda x: not x.mbr, ("mbr_metric",)),
    ("without --rerank", lambda x: not x.rerank, _RERANK),
    ("with --mbr-source samples", lambda x: x.mbr and _draws(x), _UNDRAWN),
    ("without --sample or --mbr-source samples", lambda x: not _draws(x), (*DRAWS, "seed")),
    ("with --ensemble", lambda x: x.ensemble, ("alignments",)),
)


def refuse_conflicts(asked: Any) -> None:
    """Raise ValueError for the first option that must be left out; see `CONFLICTS`.

    Args:
        asked: All options of the command, as attributes, and `search`: the search options that
            are given.
    """
    values = {name: x for name, x in (vars(asked) | asked.search).items() if x}
    if not asked.is_corpus:  # in a job over a corpus, 0 counts as left out
        values |= asked.search | ({} if asked.seed is None else {"seed": asked.seed})
    for when, applies, names in CONFLICTS:
        for name in names if applies(asked) else ():
            flag = f"--{name.replace('_', '-')}"
            require(name not in values, flag, values.get(name), f"left out {when}")


def translate_to_folder(asked: Any) -> None:
    """Translate files and folders to a folder of shards."""
    from keras_transformer.corpora import translate_corpus

    require(bool(asked.inputs), "--input", asked.inputs, "given when --output is a folder")
    require(not asked.texts, "TEXT", asked.texts, "left out when --output is a folder")
    finish(
        translate_corpus,
        folder=asked.folder,
        inputs=asked.inputs,
        output=asked.output,
        text_field=asked.text_field or "text",
        num_hypotheses=asked.num_hypotheses,
        **_loading(asked),
        **asked.corpus,
        **{name: x for name, x in asked.search.items() if name not in DRAWS},
    )


def translate_document(asked: Any) -> None:
    """Translate a document to one of the same format, as the server does."""
    from keras_transformer.serving import answers
    from keras_transformer.serving.file_translation import translate_file
    from keras_transformer.serving.handlers import TranslatorHandler
    from keras_transformer.serving.queue import Batcher
    from keras_transformer.serving.readers import Readers
    from keras_transformer.serving.turns import Workers

    require(bool(asked.output), "--output", asked.output, "the file to write, for a document")
    require(not asked.texts, "TEXT", asked.texts, "left out for a document")
    source, output = Path(asked.inputs[0]), Path(asked.output)
    is_same = source.suffix.lower() == output.suffix.lower()
    require(is_same, "--output", asked.output, f"a file that ends with {source.suffix}")
    is_other = source.resolve() != output.resolve()
    require(is_other, "--output", asked.output, "another file than --input")
    content = source.read_bytes()
    search = {name: x for name, x in asked.search.items() if name not in (*DRAWS, "strict")}
    tokens = search.pop("tokens_per_batch")
    translator = loaded(asked.folder, None, **_loading(asked))
    handler = TranslatorHandler(translator, **search)
    batcher, workers = Batcher(tokens, 0.0, most_waiting=MOST_TOKENS), Workers("files", 1)
    language = source_code(translator) or "en"

    async def texts_translated(texts, kind):
        return await answers.translate_html(batcher, workers, [handler], language, texts)

    readers = Readers(MOST_TOKENS)
    try:
        work = translate_file(source.name, content, texts_translated, readers, workers)
        result, left = asyncio.run(work)
    finally:
        batcher.close()
        workers.close()
    with replacing(output) as path:
        path.write_bytes(result)
    if left:
        say(f"not translated: {', '.join(left)}")


def translate_lines(asked: Any) -> None:
    """Translate stdin or one file to stdout or one file, in the mode that the options ask for."""
    for name, value in JobOptions.changed(asked.corpus).items():
        name = f"--{name.replace('_', '-')}"
        raise ValueError(f'{name} needs a folder as --output, such as "out/", got {value!r}')
    accepted = 'one file, unless --output is a folder, such as "out/"'
    require(len(asked.inputs or []) <= 1, "--input", asked.inputs, accepted)
    for name, value in {"--input": asked.inputs, "--text-field": asked.text_field}.items():
        require(not (asked.texts and value), name, value, "left out with texts on the command line")
    input_file = Path(asked.inputs[0]) if asked.inputs else None
    glossary = _glossary(asked)
    translator = loaded(asked.folder, asked.ensemble, **_loading(asked))
    code = source_code(translator) if input_file else None
    lines = iter(asked.texts or read_lines(input_file, asked.text_field, code))
    search = asked.search
    if asked.inline_terms:
        lines = _with_terms(lines, glossary, translator, asked.folder)
    elif glossary:
        search = search | {"constraint": glossary}
    if asked.context_sentences:
        from keras_transformer.text.context import in_context

        lines = in_context(lines, asked.context_sentences)
    mode = next((mode for name, mode in MODES.items() if getattr(asked, name)), best)
    pairs = with_prefixes(lines, asked.prefix, asked.prefix_file, str(input_file or "stdin"))
    answers = functools.partial(
        translations,
        translate=functools.partial(mode(asked, translator), **search),
        seed=asked.seed or 0 if _draws(asked) else None,
        align=pharaoh(translator) if asked.alignments else None,
    )
    output_file = Path(asked.output) if asked.output else None
    answer_lines(input_file, output_file, answers, enumerate(pairs), asked.chunk_size)


def best(asked: Any, translator: Any) -> Callable:
    """Return the function that finds the best translation of each text."""
    return translator.translate


def n_best(asked: Any, translator: Any) -> Callable:
    """Return the function that finds the `num_hypotheses` best translations of each text."""
    return functools.partial(translator.nbest, num_hypotheses=asked.num_hypotheses)


def sample(asked: Any, translator: Any) -> Callable:
    """Return the function that draws a translation of each text."""
    return translator.sample


def minimum_bayes_risk(asked: Any, translator: Any) -> Callable:
    """Return the function that takes, for each text, the candidate that agrees most with others."""
    from keras_transformer.translate.minimum_bayes_risk import translate_by_risk

    options = dict(count=asked.mbr, source=asked.mbr_source)
    if metric := learned_metric(asked.mbr_metric):
        options["utility"] = metric
    return functools.partial(translate_by_risk, translator, **options)


def rerank(asked: Any, translator: Any) -> Callable:
    """Return the function that chooses among the n best translations by several models."""
    options = [getattr(asked, name) for name in _RERANK]
    chosen = reranker(translator, *options, precision=asked.precision)
    return functools.partial(chosen.translate, count=asked.rerank)


def in_documents(asked: Any, translator: Any) -> Callable:
    """Return the function that translates each text with the previous ones."""
    from keras_transformer.translate.document_translation import translate_windows

    return functools.partial(translate_windows, translator)


# Modes of `translate_lines` by the option that asks for it; without these options, it is `best`.
MODES: dict[str, Callable[[Any, Any], Callable]] = {
    "context_sentences": in_documents,
    "mbr": minimum_bayes_risk,
    "rerank": rerank,
    "sample": sample,
    "num_hypotheses": n_best,
}


def _loading(asked):
    return {name: getattr(asked, name) for name in _LOADING}


def _glossary(asked):
    """Return the glossary, or None if there is none.

    Without --inline-terms, refuse options whose search cannot be constrained.
    """
    from keras_transformer.text.glossary import Glossary

    if asked.glossary is None:
        return None
    if not asked.inline_terms:
        takes_terms = asked.engine in ("keras", "auto")
        require(takes_terms, "--engine", asked.engine, "keras or auto with --glossary")
        is_plain = not asked.search.get("shortlist")
        require(is_plain, "--shortlist", True, "left out with --glossary")
    return Glossary.read(asked.glossary)


def _with_terms(lines, glossary, translator, folder):
    from keras_transformer.text.glossary import reads_terms

    accepted = "left out for a model that was trained without inline_terms"
    require(reads_terms(translator.tokenizer), "--inline-terms", f"{folder}", accepted)
    return map(glossary.inlined, lines)
