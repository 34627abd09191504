"""Commands that make training text with translators: back-translate, distill."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    EnsembleOf,
    Folder,
    Precision,
    SourceLanguage,
    TargetLanguage,
    TokensPerBatch,
    loaded,
    say,
    searching,
)
from keras_transformer.cli.reading import TEXT_FILE, TextField, read_lines, source_code, target_code
from keras_transformer.config import require
from keras_transformer.data.formats import TSV, suffix_of
from keras_transformer.search import SAMPLE, TRANSLATE, Search

Input = Annotated[Path, typer.Option("--input", "-i", help=f"{TEXT_FILE}.")]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="File of pairs to write, for --train: source, tab, target. The same command resumes.",
    ),
]
ChunkSize = Annotated[
    int, typer.Option(min=1, help="Number of lines to read, sort by length and write together.")
]


@searching(Search, SAMPLE)
def back_translate(
    folder: Folder,
    input_file: Input,
    output: Output,
    tag: Annotated[
        str,
        typer.Option(help="Tag before each source, which marks it as synthetic; '' for none."),
    ] = "<BT>",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    chunk_size: ChunkSize = 2048,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    text_field: TextField = None,
    **options: Any,
) -> None:
    """Translate monolingual text back into the source language, as training text.

    FOLDER is a translator in the reverse direction. The source of each pair is a sampled
    translation with a tag before it; the target is a line of the input (Caswell et al. 2019). An
    empty line, or one with an empty translation, gives no pair.

    \b
    Example, for a translator from English to German:
        keras-transformer back-translate saved_models/de-en --input news.de --output back.tsv
        cat train.tsv back.tsv > both.tsv
        keras-transformer train --train both.tsv --validation dev.tsv
    """
    from keras_transformer.training.augmentation import back_translated

    loading: dict[str, str | None] = dict(
        precision=precision, source_language=source_language, target_language=target_language
    )
    translator = loaded(folder, None, **loading)
    _check_language("--input", input_file, translator)
    options["temperature"] = options.get("temperature") or 1.0
    options |= dict(tag=tag, tokens_per_batch=tokens_per_batch)

    def pairs(number, lines):
        return back_translated(translator, lines, seed=seed + number * chunk_size, **options)

    run = dict(folder=str(folder), input=str(input_file), seed=seed, **options, **loading)
    is_table = suffix_of(input_file) in TSV
    accepted = f"the column of {input_file} with text in the language that FOLDER reads, from 1"
    require(text_field is not None or not is_table, "--text-field", text_field, accepted)
    lines = read_lines(input_file, text_field, source_code(translator))
    _write(output, pairs, run, lines, text_field, chunk_size)


@searching(Search, TRANSLATE)
def distill(
    folder: Folder,
    input_file: Input,
    output: Output,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="Reference translations of the lines; only the hypothesis closest to the "
            "reference is written."
        ),
    ] = None,
    num_hypotheses: Annotated[
        int, typer.Option("--num-hypotheses", "-n", min=1, help="Number of translations per line.")
    ] = 1,
    chunk_size: ChunkSize = 2048,
    tokens_per_batch: TokensPerBatch = 4096,
    precision: Precision = None,
    ensemble: EnsembleOf = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    text_field: TextField = None,
    **options: Any,
) -> None:
    """Translate training text with a teacher, to train a student on the translations.

    Write each line with its translation, or with several (Kim and Rush 2016).

    \b
    Example:
        keras-transformer distill saved_models/teacher --input train.en --output distilled.tsv
        keras-transformer train --recipe student --train distilled.tsv --validation dev.tsv
    """
    from keras_transformer.data.text_files import in_parallel
    from keras_transformer.training.augmentation import distilled

    loading: dict[str, str | None] = dict(
        precision=precision, source_language=source_language, target_language=target_language
    )
    teacher = loaded(folder, ensemble, **loading)
    _check_language("--input", input_file, teacher)
    options |= dict(num_hypotheses=num_hypotheses, tokens_per_batch=tokens_per_batch)

    def pairs(number, lines):
        sources, *references = zip(*lines, strict=True) if reference is not None else (lines,)
        return distilled(teacher, list(sources), *map(list, references), **options)

    run: dict[str, Any] = dict(folder=str(folder), input=str(input_file), **options, **loading)
    run |= dict(reference=reference and str(reference), ensemble=list(map(str, ensemble or [])))
    lines: Iterator[Any] = read_lines(input_file, text_field, source_code(teacher))
    if reference is not None:
        references = read_lines(reference, None, target_code(teacher))
        lines = in_parallel((lines, references), (input_file, reference))
    _write(output, pairs, run, lines, text_field, chunk_size)


def _check_language(name: str, path: Path, translator: Any) -> None:
    """Refuse a file whose name ends in the target language of the translator, as in news.de."""
    code = path.name.removesuffix(".gz").rpartition(".")[2]
    if code == translator.target_language != translator.source_language:
        raise ValueError(
            f"{name} must be text in {translator.source_language}, which the translator reads, "
            f"got {path}: it writes {code}"
        )


def _write(
    output: Path,
    pairs: Callable[[int, list], Iterable[tuple[str, str]]],
    run: dict[str, Any],
    lines: Iterator[Any],
    text_field: str | None,
    chunk_size: int,
) -> None:
    """Write the pairs of each chunk of lines; skip the chunks that an earlier run has written."""
    from keras_transformer.data.resumable import write_in_chunks

    run |= {"text_field": text_field} if text_field is not None else {}

    def chunks():
        while chunk := list(itertools.islice(lines, chunk_size)):
            yield chunk

    def lines_of(number, chunk):
        return ["\t".join(" ".join(x.split()) for x in pair) for pair in pairs(number, chunk)]

    done = write_in_chunks(output, chunks(), lines_of, {**run, "chunk_size": chunk_size})
    if done:
        say(f"resumed after {done * chunk_size} lines")
    typer.echo(output)
